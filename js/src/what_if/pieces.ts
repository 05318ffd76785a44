// A longer computation in pieces, between which the page answers.

const PIECE_MS = 8; // that a piece may hold up the page

/** Goes through all steps and hands the result on; what it returns stops it. */
export function inPieces<T>(steps: Generator<undefined, T>, done: (result: T) => void): () => void {
  const go = () => {
    const until = performance.now() + PIECE_MS;
    let step = steps.next();
    while (!step.done && performance.now() < until) step = steps.next();
    if (step.done) done(step.value);
    else timer = setTimeout(go);
  };
  let timer = setTimeout(go);
  return () => clearTimeout(timer);
}
