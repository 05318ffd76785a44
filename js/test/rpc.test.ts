import { expect, it } from "vitest";
import { FrozenModel } from "../src/host";
import { Rpc, RpcError } from "../src/rpc";

function setUp() {
  const model = new FrozenModel({});
  const view = new AbortController();
  const sent = (i: number) => model.sent[i]?.content as { call: string; method?: string; cancel?: boolean };
  return { model, view, sent, rpc: new Rpc(model, view.signal) };
}

it("pairs replies with calls by name", async () => {
  const { model, rpc, sent } = setUp();
  const [one, two] = [rpc.call("f", { n: 1 }), rpc.call("g")];
  model.emit("msg:custom", { rpc: 1, call: sent(1).call, result: "two" }, []);
  model.emit("msg:custom", { rpc: 1, call: sent(0).call, result: "one" }, [new DataView(new ArrayBuffer(8))]);
  expect((await two).result).toBe("two");
  expect(await one).toMatchObject({ result: "one", buffers: [{ byteLength: 8 }] });
});

it("leaves replies to other views' questions alone", async () => {
  const { model, rpc, sent } = setUp();
  const own = rpc.call("f");
  model.emit("msg:custom", { rpc: 1, call: "another.1", result: "theirs" }, []);
  model.emit("msg:custom", { rpc: 1, call: sent(0).call, result: "ours" }, []);
  expect((await own).result).toBe("ours");
});

it("turns error replies into RpcError", async () => {
  const { model, rpc, sent } = setUp();
  const call = rpc.call("f");
  model.emit("msg:custom", {
    rpc: 1,
    call: sent(0).call,
    error: { type: "LookupError", message: "no slice 7" },
  });
  await expect(call).rejects.toEqual(new RpcError("LookupError", "no slice 7"));
});

it("cancels by name, for one call and for a view that is taken down", async () => {
  const { rpc, sent, view } = setUp();
  const controller = new AbortController();
  const one = rpc.call("f", {}, { signal: controller.signal });
  const two = rpc.call("g");
  controller.abort();
  await expect(one).rejects.toMatchObject({ name: "AbortError" });
  expect(sent(2)).toMatchObject({ call: sent(0).call, cancel: true });
  view.abort();
  await expect(two).rejects.toMatchObject({ name: "AbortError" });
  await expect(rpc.call("h")).rejects.toMatchObject({ name: "AbortError" });
});
