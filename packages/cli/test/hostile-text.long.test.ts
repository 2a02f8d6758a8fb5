import { describe, expect, test } from 'vitest'
import { badAgents, skein, tempFolder, type Ended } from './kit.ts'

/** A machine with other work takes its time to start processes. */
const timeout = 60_000

/** The colours that the command itself writes. */
// oxlint-disable-next-line no-control-regex
const COLOUR = /\u001b\[\d{1,2}m/g

/** What a terminal would obey, or show in another order than it was sent. */
const INTERPRETED = /[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}\p{Cs}\p{Cf}]/u

function expectSafe(...all: readonly Ended[]): void {
  for (const { stdout, stderr } of all) {
    expect(stdout.replaceAll(COLOUR, '')).not.toMatch(INTERPRETED)
    expect(stderr.replaceAll(COLOUR, '')).not.toMatch(INTERPRETED)
  }
}

describe.each([{ FORCE_COLOR: '1' }, { FORCE_COLOR: '0' }])(
  'text of a model that attacks the terminal, %j',
  { timeout },
  (env) => {
    test('is visible and harmless in run, list, show, tail, fork and errors', async () => {
      const cwd = tempFolder()
      const folder = ['--folder', badAgents]
      const command = (...args: string[]): Promise<Ended> =>
        skein([...args, ...folder], { cwd, env })
      const json = await command('run', 'hostile', 'Speak', '--json')
      const { thread, text } = JSON.parse(json.stdout)
      expect(text).toContain('\u001b]52;c;') // programs get the text as it is
      const { id } = thread as { id: string }
      const title = 'ok\u001b[2Jnot\nok \u202eok'
      const all = [
        json,
        await command('run', 'hostile', 'Speak', '--verbose'),
        await command('run', 'hostile', 'Speak', '--jsonl'),
        await command('thread', 'show', id),
        await command('thread', 'tail', id),
        await command('thread', 'fork', id, '--title', title),
        await command('thread', 'list'),
        await command('run', 'no\u001b[2Jbody\u009b', 'Speak'),
        await skein(['no\u001b[2Jcommand'], { cwd, env }),
      ]
      expectSafe(...all)
      expect(all[1]!.stdout).toContain('Hi\\u{1b}]52;c;cm0gLXJm\\u{7}')
      expect(all[1]!.stdout).toContain('\\u{202e}evil\\u{202c} a\\u{200b}b\\u{d} approved: pay')
      expect(all[6]!.stdout).toContain('ok\\u{1b}[2Jnot\\u{a}ok \\u{202e}ok')
    })

    test('no argument of a call can hide from the person who approves it', async () => {
      const cwd = tempFolder()
      const folder = ['--folder', badAgents]
      const asked = await skein(['run', 'hostile', 'Pay', ...folder], { cwd, env })
      expect(asked.code).toBe(3)
      const inbox = await skein(['inbox', ...folder], { cwd, env })
      expectSafe(asked, inbox)
      const call =
        /pay \(note, reason, to\) \{note: "gift .*\[3000 blank characters\].*to: "mallory"\}/
      expect(asked.stderr).toMatch(call)
      expect(inbox.stdout).toMatch(call)
      const line = inbox.stdout.split('\n').find((text) => text.includes('asks:'))!
      expect(line.length).toBeLessThan(600)
    })
  },
)

test('an exported log is exact in a pipe, so that it can be imported', { timeout }, async () => {
  const cwd = tempFolder()
  const folder = ['--folder', badAgents]
  const ran = await skein(['run', 'hostile', 'Speak', '--json', ...folder], { cwd })
  const { id } = JSON.parse(ran.stdout).thread as { id: string }
  const { stdout: input } = await skein(['thread', 'export', id, ...folder], { cwd })
  const imported = await skein(['thread', 'import', '-', '--json', ...folder], { cwd, input })
  expect(imported.code).toBe(0)
  const copy = (JSON.parse(imported.stdout) as { id: string }).id
  const shown = await skein(['thread', 'show', copy, '--json', ...folder], { cwd })
  expect(JSON.stringify(JSON.parse(shown.stdout).messages)).toContain('\\u001b]52;c;')
})
