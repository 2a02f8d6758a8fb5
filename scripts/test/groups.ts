/**
 * The groups of tests that `npm test` leaves out, because they need packages of other projects or minutes. A file
 * belongs to a group by its name: `x.browser.test.ts`. `npm run test:all` runs all of them, `npm run test:all -- browser`
 * one; each is a project of vitest.config.ts.
 */
export interface Group {
  readonly name: string
  /** What its tests are about, for the line that announces it. */
  readonly what: string
  /** The folders of `peers/` whose packages it installs. */
  readonly peers: readonly string[]
  /** How long its tests take on two cores, roughly. Printed, nothing else. */
  readonly minutes: number
  /** How long one test may take unless it says so itself. */
  readonly testTimeoutMs: number
  /** How many files run at the same time; fewer than cores where a file brings servers of its own. */
  readonly workers: number
}

/** The folders of `peers/` that tests import from; the others hold programs that tests start. */
export const linkedPeers: ReadonlySet<string> = new Set(['browser', 'frameworks', 'sdks'])

export const groups: readonly Group[] = [
  {
    name: 'sdks',
    what: 'SDKs of vendors, the AI SDK, clients of MCP, A2A and AG-UI',
    peers: ['sdks'],
    minutes: 2,
    testTimeoutMs: 60_000,
    workers: 2,
  },
  {
    name: 'frameworks',
    what: 'LangGraph, OpenAI Agents, Mastra, engines for policies',
    peers: ['frameworks', 'browser'],
    minutes: 2,
    testTimeoutMs: 90_000,
    workers: 2,
  },
  {
    name: 'browser',
    what: 'Studio and pages in Chromium, a page of Next.js',
    peers: ['browser', 'next', 'docs'],
    minutes: 4,
    testTimeoutMs: 120_000,
    workers: 2,
  },
  {
    name: 'postgres',
    what: 'a PostgreSQL server that is killed and restarted',
    peers: ['postgres'],
    minutes: 4,
    testTimeoutMs: 120_000,
    workers: 2,
  },
  {
    name: 'restate',
    what: 'a Restate server that is killed and restarted',
    peers: ['restate', 'postgres'],
    minutes: 3,
    testTimeoutMs: 120_000,
    workers: 1,
  },
  {
    name: 'packed',
    what: 'the packages as published, in new projects',
    peers: ['browser', 'postgres'],
    minutes: 4,
    testTimeoutMs: 300_000,
    workers: 1,
  },
  {
    name: 'long',
    what: 'long simulations, kill loops, regular expressions',
    peers: ['recheck'],
    minutes: 5,
    testTimeoutMs: 300_000,
    workers: 2,
  },
  {
    name: 'shared',
    what: 'the conformance data that may be next to the repository (SKEIN_SHARED, otherwise ../shared)',
    peers: ['sdks'],
    minutes: 1,
    testTimeoutMs: 120_000,
    workers: 2,
  },
]

/** The group that a file name contains; undefined for a file of `npm test`. */
export function groupOf(file: string): Group | undefined {
  const suffix = /\.([a-z]+)\.test(?:-d)?\.tsx?$/.exec(file)?.[1]
  return groups.find(({ name }) => name === suffix)
}
