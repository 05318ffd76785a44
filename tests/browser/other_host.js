// A page that is neither JupyterLab nor Notebook: a widget manager, and a kernel behind two functions of the test.

// Just enough of RequireJS for bundles that define themselves.
const modules = new Map([["module", { id: "", uri: "" }]]);
let anonymous;
const required = (names) => names.map((name) => modules.get(name));
window.define = (...given) => {
  const factory = given.pop();
  const names = Array.isArray(given.at(-1)) ? given.pop() : [];
  const made = () => (typeof factory === "function" ? factory(...required(names)) : factory);
  if (given.length) modules.set(given[0], made());
  else anonymous = made;
};
window.define.amd = {};
window.require = window.requirejs = (names, done) => done(...required(names));

async function load(name) {
  if (modules.has(name)) return modules.get(name);
  await new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), { src: `/modules/${name}.js` });
    script.onload = resolve;
    script.onerror = () => reject(new Error(`no module ${name}`));
    document.head.append(script);
  });
  if (anonymous) modules.set(name, anonymous());
  anonymous = undefined;
  return modules.get(name);
}

const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);

class Signal {
  connect() {}
  disconnect() {}
}

class Comm {
  constructor(commId, targetName) {
    Object.assign(this, { commId, targetName, isDisposed: false });
  }
  open(data) {
    return this.send(data);
  }
  send(data, _metadata, buffers = []) {
    const future = { msg: { header: { msg_id: crypto.randomUUID() } }, done: Promise.resolve() };
    const packed = buffers.map((b) => btoa(String.fromCharCode(...new Uint8Array(b.buffer ?? b))));
    // what frees a model to send again
    const idle = { header: { msg_type: "status" }, content: { execution_state: "idle" }, parent_header: {} };
    window.toKernel(this.commId, data, packed).then(() => future.onIOPub?.(idle));
    return future;
  }
  close() {
    return this.send({});
  }
  dispose() {
    this.isDisposed = true;
  }
}

class Kernel {
  #comms = new Map();
  #targets = new Map();
  statusChanged = new Signal();
  connectionStatusChanged = new Signal();
  disposed = new Signal();
  iopubMessage = new Signal();
  status = "idle";
  connectionStatus = "connected";
  handleComms = true;

  registerCommTarget(name, open) {
    this.#targets.set(name, open);
  }
  createComm(targetName, id) {
    if (!this.#comms.has(id)) this.#comms.set(id, new Comm(id, targetName));
    return this.#comms.get(id);
  }
  async requestCommInfo() {
    return { content: { comms: {} } };
  }
  async receive({ type, id, target, data, metadata, buffers }) {
    const message = {
      header: { msg_type: type, msg_id: crypto.randomUUID() },
      parent_header: {},
      metadata,
      content: { comm_id: id, target_name: target, data },
      buffers: buffers.map(bytes),
    };
    if (type === "comm_open") await this.#targets.get(target)?.(this.createComm(target, id), message);
    else if (type === "comm_msg") await this.#comms.get(id)?.onMsg?.(message);
    else this.#comms.get(id)?.onClose?.(message);
  }
  async run() {
    for (;;) {
      for (const message of await window.fromKernel()) await this.receive(message);
      await new Promise((go) => setTimeout(go, 20));
    }
  }
}

// The manager of VS Code's Jupyter extension, as it makes it: models are opened by the kernel.
async function vsCode(kernel, el) {
  const { activate } = await import("/modules/vs_code.js");
  activate();
  window.vscIPyWidgets8.load();
  const scripts = {
    widgetsRegisteredInRequireJs: new Set(),
    loadWidgetScript: load,
    successHandler() {},
    errorHandler: (name, module, version, error) => console.error(module, name, version, error),
  };
  return new window.vscIPyWidgets.WidgetManager(kernel, el, scripts, () => undefined);
}

// A manager as Colab's: a page for each output, which asks for the state of each model that it meets.
async function asColab(kernel) {
  const { HTMLManager } = await load("@jupyter-widgets/html-manager");
  const { put_buffers, shims } = modules.get("@jupyter-widgets/base");
  class Manager extends HTMLManager {
    #known = new Map();
    get_model(id) {
      if (!this.#known.has(id)) this.#known.set(id, this.#make(id));
      return this.#known.get(id);
    }
    async #make(id) {
      const { state, paths, buffers } = await window.stateOf(id);
      put_buffers(state, paths, buffers.map(bytes));
      const comm = new shims.services.Comm(kernel.createComm("jupyter.widget", id));
      const { _model_name: model_name, _model_module: model_module } = state;
      const named = { model_name, model_module, model_module_version: state._model_module_version };
      return this.new_model({ ...named, model_id: id, comm }, state);
    }
  }
  return new Manager({ loader: load });
}

window.show = async (host, id) => {
  const el = document.querySelector("#output");
  const kernel = new Kernel();
  const manager = await { vsCode, asColab }[host](kernel, el);
  void kernel.run();
  let model;
  for (let tries = 0; !model && tries < 200; tries++) {
    model = await Promise.resolve(manager.get_model(id)).catch(() => undefined);
    await new Promise((go) => setTimeout(go, 50));
  }
  const view = await manager.create_view(model, { el });
  if (host === "vsCode") await manager.display_view(view, view, { node: el });
  else await manager.display_view(view, el);
};
