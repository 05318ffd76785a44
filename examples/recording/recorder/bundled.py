"""The recordings that are examples of the package: their names there."""

BUNDLED = {
    "baseline": "h100_gpt2",
    "data_stall": "h100_gpt2_loader_stall",
    "data_stall_workers": "h100_gpt2_loader_workers",
    "compiled": "h100_gpt2_compiled",
    "unpadded": "h100_gpt2_unpadded",
    "fp32": "h100_gpt2_fp32",
    "tf32": "h100_gpt2_tf32",
    "small_batch": "h100_gpt2_small_batch",
    "small_batch_cuda_graphs": "h100_gpt2_small_batch_cuda_graphs",
    "images": "h100_resnet50",
    "images_not_channels_last": "h100_resnet50_channels_first",
    "images_pageable": "h100_resnet50_pageable",
    "serving": "h100_decode",
    "serving_cuda_graphs": "h100_decode_cuda_graphs",
}
