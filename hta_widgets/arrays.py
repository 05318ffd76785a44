"""Names for arrays of one type of number."""

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Int16 = npt.NDArray[np.int16]
Int8 = npt.NDArray[np.int8]
UInt8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]
