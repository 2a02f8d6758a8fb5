import { wellFormed } from '@skein/base'
import { type CrashtestResult, hasFailed, type PointResult } from './crashtest.ts'

/** Formats the result as a JUnit report: one test case for each crash point. It has no times, so it says the same each time. */
export function junitReport(name: string, { points }: CrashtestResult): string {
  const failures = points.filter(hasFailed).length
  const skipped = points.filter(({ isReached }) => !isReached).length
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="${escape(`skein crashtest ${name}`)}" tests="${points.length}" failures="${failures}" skipped="${skipped}">`,
    ...points.flatMap((point) => testCase(name, point)),
    '</testsuite>',
    '',
  ].join('\n')
}

function testCase(name: string, point: PointResult): string[] {
  const { step, when } = point
  const start = `  <testcase classname="${escape(name)}" name="${escape(`${when} ${step.name}`)}"`
  const content = hasFailed(point)
    ? [`    <failure message="${escape(problems(point).join('; '))}"/>`]
    : point.isReached
      ? []
      : ['    <skipped message="The program did not come to this step."/>']
  return content.length > 0 ? [`${start}>`, ...content, '  </testcase>'] : [`${start}/>`]
}

function problems({ effects, ending, exitCode }: PointResult): string[] {
  return [
    ...effects
      .filter(({ verdict }) => verdict === 'doubled' || verdict === 'lost')
      .map(
        ({ effect, verdict, times, expected }) =>
          `${verdict}: ${effect} (${times} instead of ${expected})`,
      ),
    ...(ending === 'failed' ? [`ended with exit code ${exitCode}`] : []),
    ...(ending === 'timed_out' ? ['did not end'] : []),
  ]
}

/** Escapes text for an attribute; characters that XML does not allow are left out. */
function escape(text: string): string {
  const entities: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    '\n': '&#10;',
  }
  return wellFormed(text)
    .replaceAll(/[\0-\x08\v\f\x0E-\x1F\uFFFE\uFFFF]/g, '')
    .replaceAll(/[&<>"\n]/g, (character: string) => entities[character]!)
}
