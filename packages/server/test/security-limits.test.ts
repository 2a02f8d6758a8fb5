import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DEFAULT_LIMITS } from '../src/http/services.ts'
import { defaultLimits } from '../../runtime/src/contract/limits.ts'

const page = readFileSync(new URL('../../../SECURITY.md', import.meta.url), 'utf8')

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  ms: 1,
  s: 1000,
  min: 60_000,
  h: 3_600_000,
  d: 24 * 3_600_000,
  KiB: 1024,
  MiB: 1024 * 1024,
}

/** The names and defaults of the table beneath a heading. */
function tableOf(heading: string): Readonly<Record<string, number>> {
  const section = page.split(/^### /m).find((part) => part.startsWith(heading))
  if (section === undefined) throw new Error(`SECURITY.md has no section ${heading}`)
  const rows = [...section.matchAll(/^\| `(\w+)` +\| ([\d.]+) ?(\w*) +\| \S/gm)]
  return Object.fromEntries(
    rows.map(([, name, value, unit]) => [name, Number(value) * UNITS[unit ?? '']!]),
  )
}

test.each([
  { heading: '`createRuntime({ limits })`', limits: defaultLimits },
  { heading: '`serve(runtime, { limits })`', limits: DEFAULT_LIMITS },
])('SECURITY.md names every limit of $heading with its default', ({ heading, limits }) => {
  expect(tableOf(heading)).toEqual(limits)
})
