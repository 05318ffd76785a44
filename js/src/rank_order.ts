// Which ranks of many are shown, in which order, and in which groups.

export interface Option {
  rank: number;
  label: string;
  /** where it stands in the job, if that is known: `stage 1, replica 0` */
  place?: string;
}

/** A way to group ranks. */
export interface Grouping {
  name: string;
  groups: string[];
  /** of each rank, in the order of the options, the number of its group; -1 for none */
  of: number[];
}

/** The ranks that one of the phrases between commas is about: `7`, `64-71`, `node 3`, or a part of a name. */
export function found(options: readonly Option[], text: string, about: (rank: number) => string): Option[] {
  const tests = text
    .toLowerCase()
    .split(",")
    .map((phrase) => phrase.trim())
    .filter(Boolean)
    .map(testOf);
  if (tests.length === 0) return [...options];
  return options.filter(({ rank, label, place = "" }) => {
    const words = `rank ${label}\n${place.replaceAll(", ", "\n")}\n${about(rank)}`.toLowerCase();
    return tests.some((test) => test(rank, words));
  });
}

function testOf(phrase: string): (rank: number, words: string) => boolean {
  const [, first, last] = /^(\d+)(?:\s*[-–]\s*(\d+))?$/.exec(phrase) ?? [];
  if (first) return (rank) => rank >= Number(first) && rank <= Number(last ?? first);
  // not a part of a longer number: `node 1` is not `node 12`
  const text = phrase.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const holds = new RegExp(
    `${/^\d/.test(phrase) ? "(?<!\\d)" : ""}${text}${/\d$/.test(phrase) ? "(?!\\d)" : ""}`,
  );
  return (_, words) => holds.test(words);
}

/** The ranks that are given first, then the others; or, with sizes, the largest first. Of equals by number. */
export function sorted(
  ranks: readonly number[],
  first: readonly number[],
  size: ((rank: number) => number) | null,
): number[] {
  const place = new Map(first.map((rank, at) => [rank, at]));
  const of = size ?? ((rank: number) => -(place.get(rank) ?? first.length));
  // unknown sizes last
  const known = (rank: number) => (Number.isNaN(of(rank)) ? Number.NEGATIVE_INFINITY : of(rank));
  return [...ranks].sort((a, b) => Math.sign(known(b) - known(a)) || a - b);
}

export interface Group {
  name: string;
  ranks: number[];
}

/** The ranks by group, those that are in none at the end; all as one without a name where nothing groups them. */
export function grouped(
  options: readonly Option[],
  ranks: readonly number[],
  by: Grouping | undefined,
): Group[] {
  if (!by) return [{ name: "", ranks: [...ranks] }];
  const of = new Map(options.map(({ rank }, at) => [rank, by.of[at] ?? -1]));
  const groups = [...by.groups, "in no group"].map((name): Group => ({ name, ranks: [] }));
  for (const rank of ranks) groups.at(of.get(rank) ?? -1)?.ranks.push(rank);
  return groups.filter((group) => group.ranks.length > 0);
}
