import type { CrashtestResult } from '../src/crashtest/crashtest.ts'
import { type Ended, skein } from './kit.ts'
import { project } from './project.ts'

/** The world of the programs here: a bank and a mail server that answer everything. */
export const WORLD = `export default () => (request) => {
  if (request.headers.has('x-fail')) throw new Error('it broke')
  return new URL(request.url).hostname.endsWith('.test') ? Response.json({ ok: true }) : undefined
}
`

/** Runs `skein crashtest` for `app.js` in a project of its own. */
export function crashtest(
  program: string,
  args: readonly string[] = [],
  files: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const cwd = project({ 'app.js': program, 'world.js': WORLD, ...files })
  return skein(['crashtest', 'app.js', '--world', 'world.js', ...args], { cwd })
}

/** What `--json` prints. */
export interface Printed extends CrashtestResult {
  readonly ok: boolean
  readonly summary: string
}

export function printed({ stdout, stderr }: Ended): Printed {
  if (!stdout.startsWith('{')) throw new Error(`There is no result: ${stdout}${stderr}`)
  return JSON.parse(stdout) as Printed
}

/** The points at which an effect was doubled or lost, e.g. `doubled after 2`. */
export function problems({ points }: Printed): string[] {
  return points.flatMap(({ step, when, effects }) =>
    effects
      .filter(({ verdict }) => verdict !== 'same')
      .map(({ verdict }) => `${verdict} ${when} ${step.number}`),
  )
}
