// Replays packed graphs with the browser's code: node replay_node.mjs BUNDLE GRAPH CONTROLS QUESTIONS, which are JSON.
// Prints for each question the hash of all times, the latest of them, the parts of the device's time, and the map.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [bundle, graph, controls, questions] = process.argv.slice(2);
const { Parts, Replay, unpack } = await import(pathToFileURL(bundle).href);
const SPEEDS = [0.5, 1.4, 4];
const read = (path) => JSON.parse(readFileSync(path, "utf8"));
const unpacked = unpack(new Uint8Array(readFileSync(graph)));
const replay = new Replay(unpacked, read(controls));
const parts = new Parts(unpacked, replay.times({}, 0));
function finished(steps) {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}
for (const { settings, mode } of read(questions)) {
  const times = replay.times(settings, mode);
  let hash = 0; // the order counts; it stays below 2^53
  for (const time of times) hash = (hash * 31 + time) % 2147483647;
  const last = times.reduce((one, two) => Math.max(one, two), 0);
  const { parts_after, ...whole } = mode === 1 ? replay.whole(settings) : { parts_after: parts.of(times, last) };
  const chain = mode === 1 ? finished(replay.chain(settings)).map(({ name, alone, together }) => [name, alone, together]) : [];
  const map = mode === 1 ? finished(replay.speedMap(settings, SPEEDS)).after : [];
  console.log(JSON.stringify({ hash, last, parts: parts_after, low: whole.low, high: whole.high, chain, map }));
}
