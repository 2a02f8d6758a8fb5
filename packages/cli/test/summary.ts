/** Status, turns, tokens, cost, time, thread. */
export const summary: RegExp =
  /^(?<status>[^·\n]+) · \d+ turns? · \d+ tokens · cost (?:unknown|\$[\d.]+) · [\d.]+ s · thread (?<thread>[\w-]{36})\n$/m

/** The thread that the summary names. */
export function threadIn(stderr: string): string {
  return summary.exec(stderr)!.groups!['thread']!
}
