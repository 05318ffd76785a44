// A part of a report: its state as it was, and the answers that were saved with it.

import { FrozenModel } from "../host";
import type { Question } from "./payload";

const NO_KERNEL = "this is a frozen report: open the trace in a notebook for that";

interface RpcRequest {
  rpc?: number;
  call?: string;
  method?: string;
  params?: Record<string, unknown>;
  cancel?: boolean;
}

export type Answer = { result: unknown; buffers: DataView[] };
export type Answerer = (params: Record<string, unknown>) => Answer;

export class FrozenPart extends FrozenModel {
  #questions: Map<string, Question>;
  #used = new Set<string>();
  #answerers = new Map<string, Answerer>();

  constructor(state: Record<string, unknown>, questions: readonly Question[]) {
    super({ ...state, frozen: true });
    this.#questions = new Map(questions.map((question) => [question.method, question]));
  }

  /** The saved answer to a question; undefined if there is none. */
  savedAnswer(method: string): Answer | undefined {
    return this.#questions.get(method);
  }

  /** Answer a question here instead. */
  answer(method: string, answerer: Answerer): void {
    this.#answerers.set(method, answerer);
  }

  override send(content: unknown): void {
    const { rpc, call, method = "", params = {}, cancel } = (content ?? {}) as RpcRequest;
    if (rpc !== 1 || cancel) return;
    const reply = (body: object, buffers: DataView[] = []) =>
      queueMicrotask(() => this.emit("msg:custom", { rpc: 1, call, ...body }, buffers));
    const answerer = this.#answerers.get(method);
    if (answerer) {
      const { result, buffers } = answerer(params);
      reply({ result }, buffers);
      return;
    }
    const question = this.#questions.get(method);
    // A repeated request wants a finer resolution than was saved; without a reply the view keeps what it has.
    const unanswered = question && (question.result === null || (question.once && this.#used.has(method)));
    this.#used.add(method);
    if (!question) reply({ error: { type: "Frozen", message: NO_KERNEL } });
    else if (!unanswered) reply({ result: question.result }, question.buffers);
  }
}
