import { expect, test } from 'vitest'
import { skein } from './kit.ts'
import { project } from './project.ts'

const scripted = `import { says, scripted } from '@skein/ai/testing'\nconst model = scripted(() => says('ok'))\n`
const runtime = `import { defineEffect, defineHook, definePrompt, defineTool } from '@skein/runtime'\n`
const agent = (name: string, rest: string): string => `export default { name: '${name}', ${rest} }`
const prompt = (name: string, rest: string): string =>
  `${runtime}${scripted}export default definePrompt({ name: '${name}', prompt: 'P.', model, ${rest} })`
const tool = (name: string, rest: string): string =>
  `${runtime}export default defineTool({ name: '${name}', description: 'T.', execute: () => 'x', ${rest} })`

/** Each wrong file, the field that is named, and what to write instead. */
const MISTAKES: ReadonlyArray<readonly [file: string, text: string, says: string]> = [
  ['agents/a1.ts', agent('a1', `sideA: { prompt: 'mian' }`), 'did you mean "main"?'],
  ['agents/a2.ts', `export default { nmae: 'a2', sideA: { prompt: 'main' } }`, 'mean "name"?'],
  ['agents/a3.ts', agent('a3', `sideA: { promt: 'main' }`), 'did you mean "prompt"?'],
  [
    'agents/a4.ts',
    agent('a4', `type: 'dual', sideA: { prompt: 'main' }`),
    'one of "ai_human", "dual_ai"',
  ],
  [
    'agents/a5.ts',
    `export const a5 = { name: 'a5' }`,
    'it exports a5; write: export default defineAgent({ … })',
  ],
  [
    'agents/a6.ts',
    agent('a6', `sideA: { prompt: 'main', maxSteps: 0 }`),
    'a whole number above zero',
  ],
  [
    'agents/a7.ts',
    agent('a7', `sideA: { prompt: 'main' }, budget: { maxCost: 1 }`),
    'did you mean "maxCostUsd"?',
  ],
  ['agents/a8.ts', `\n\nexport default { name: 'a8', `, '(line 3)'],
  ['agents/a9.ts', `import x from 'zodd'\nexport default x`, 'run: npm install zodd'],
  [
    'agents/a10.ts',
    agent('a10', `sideA: { prompt: 'main', stopTool: 'finish' }`),
    'there is: look_up',
  ],
  ['agents/z1.ts', agent('main', `sideA: { prompt: 'main' }`), '(agents/main.ts and agents/z1.ts)'],
  ['agents/a12.ts', `export default 'main'`, 'must be an agent, not a string; defineAgent({ … })'],
  [
    'agents/a13.ts',
    agent('a13', `type: 'dual_ai', sideA: { prompt: 'main' }`),
    'sideB: is required',
  ],
  [
    'agents/a14.ts',
    agent('a14', `sideA: { prompt: 'prompts/main.ts' }`),
    'there is no prompt "prompts/main.ts"',
  ],
  ['prompts/p1.ts', prompt('p1', `tools: ['lookup']`), 'did you mean "look_up"?'],
  [
    'prompts/p2.ts',
    `export default { kind: 'prompt', name: 'p2', prompt: 'P.', model: 'gpt-5' }`,
    'give the model itself, such as openai("gpt-5")',
  ],
  [
    'prompts/p3.ts',
    `${scripted}export default { name: 'p3', prompt: 'P.', model }`,
    'kind: is required; definePrompt({ … }) adds it',
  ],
  ['prompts/p4.ts', prompt('p4', `toolChoice: 'always'`), 'one of "auto", "none", "required"'],
  [
    'tools/t1.ts',
    tool('t1', `risk: 'high'`),
    'one of "read_only", "write_low_risk", "write_high_risk"',
  ],
  ['tools/t2.ts', tool('t2', ''), 'is required, one of "read_only", "write_low_risk"'],
  [
    'tools/t3.ts',
    tool('t3', `risk: 'write_high_risk'`),
    `a function that returns how to undo a call, or 'impossible'`,
  ],
  [
    'tools/t4.ts',
    tool('t4', `risk: 'read_only', args: { type: 'object' }`),
    'e.g. z.object({ … })',
  ],
  ['tools/t5.ts', `export default async () => 'x'`, 'not a function; defineTool({ … }) makes one'],
  [
    'tools/t7.ts',
    tool('t7', `risk: 'write_high_risk', rollback: { tool: 'lok_up' }`),
    'did you mean "look_up"?',
  ],
  ['tools/t6.ts', tool('t_six', `risk: 'read_only'`), 'must be "t6", like its file'],
  [
    'hooks/h1.ts',
    `${runtime}export default defineHook({ id: 'h1', hook: 'filter_message', execute: () => {} })`,
    'did you mean "filter_messages"?',
  ],
  [
    'effects/e1.ts',
    `${runtime}export default defineEffect({ name: 'e1', execute: (s) => s.scheduleEffect('e1', 0, { cron: '0 9 31 2 *' }) })`,
    'the day of month never comes in these months. Five fields: minute',
  ],
  [
    'effects/e2.ts',
    `${runtime}export default defineEffect({ name: 'e2', execute: (s) => s.scheduleEffect('e2', 0, { cron: '@daily', timeZone: 'Zurich' }) })`,
    'There is no time zone "Zurich". Use a name of the IANA list, e.g. Europe/Zurich',
  ],
]

test(
  '27 wrong definitions: each answer names what to write instead',
  { timeout: 60_000 },
  async () => {
    const cwd = project({
      'agents/main.ts': agent('main', `sideA: { prompt: 'main' }`),
      'prompts/main.ts': prompt('main', `tools: ['look_up']`),
      'tools/look_up.ts': tool('look_up', `risk: 'read_only'`),
      ...Object.fromEntries(MISTAKES.map(([file, text]) => [file, text])),
    })
    const { code, stdout } = await skein(['check'], { cwd })
    expect(code).toBe(1)
    const lines = stdout.trimEnd().split('\n')
    const about = (file: string): string[] => lines.filter((line) => line.startsWith(`${file}: `))
    for (const [file, , says] of MISTAKES) expect.soft(about(file).join('\n'), file).toContain(says)
    // Right files are not blamed.
    const right = lines.filter((line) => !MISTAKES.some(([file]) => line.startsWith(`${file}: `)))
    expect(right).toEqual([])
  },
)
