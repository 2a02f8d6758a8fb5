import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startDev, tempFolder } from '../kit.ts'
import { HIDDEN_ARGUMENT, HOSTILE, SPACES } from './hostile-texts.ts'
import { pty, Terminal } from './terminal.ts'

const agents = join(import.meta.dirname, 'agents')
const everything = Object.values(HOSTILE).join('\n')

async function show(
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: Record<string, string> },
): Promise<string> {
  const terminal = new Terminal(args, options)
  await terminal.ended
  return terminal.output
}

/** Sequences that readline and the command itself write: colours, and the line that is being edited. */
// oxlint-disable-next-line no-control-regex
const OWN =
  /\u001b\[(?:0|1|2|22|31|32|33|36|39)m|\u001b\[(?:\d+G|0?J|0?K|\d*[CD])|\u001b\[\?2004[hl]/g

/** Fails when something in the output would be carried out by a terminal instead of being shown. */
function expectShown(output: string, name: string): void {
  for (const [what, text] of Object.entries(HOSTILE))
    expect(output.includes(text) ? `${name} carries out: ${what}` : 'shown').toBe('shown')
  const rest = output.replaceAll(OWN, '')
  // oxlint-disable-next-line no-control-regex
  const control = /[\0-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]/.exec(rest)
  const around =
    control && JSON.stringify(rest.slice(Math.max(0, control.index - 60), control.index + 40))
  expect(around, `${name} writes a control character`).toBeNull()
  expect(
    /[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/.exec(rest),
    `${name} writes an invisible character`,
  ).toBeNull()
  // A line of the terminal is overwritten only by spaces, which is how the command clears its own status.
  for (const [, after = ''] of rest.matchAll(/\r(?!\r*\n)([^\r\n]*)/g))
    expect(after.includes('Pays 1') || after.includes('approved: nothing') ? after : '').toBe('')
}

const timeout = 90_000

describe.skipIf(typeof pty === 'string')('texts of models in a terminal', { timeout }, () => {
  test.each(['hello', 'call', 'fail', 'pay'])('run: %s', async (text) => {
    const cwd = tempFolder()
    const output = await show(['run', 'loud', text, '--folder', agents], { cwd })
    expectShown(output, `run ${text}`)
    expect(output.length).toBeGreaterThan(200)
    if (text === 'hello') expect(output).toContain('That is all.')
  })

  test.each<Record<string, string>>([{ NO_COLOR: '1' }, { FORCE_COLOR: '1' }])(
    'run with %o',
    async (env) => {
      const output = await show(['run', 'loud', 'call', '--folder', agents], {
        cwd: tempFolder(),
        env,
      })
      expectShown(output, 'run')
      if ('NO_COLOR' in env) expect(output).not.toContain('\u001b')
    },
  )

  test('--json and --jsonl in a terminal', async () => {
    const cwd = tempFolder()
    for (const form of ['--json', '--jsonl'])
      expectShown(await show(['run', 'loud', 'hello', form, '--folder', agents], { cwd }), form)
  })

  test('thread list, show and tail, and the inbox', async () => {
    const cwd = tempFolder()
    const { url } = await startDev([agents], { cwd })
    const ids: string[] = []
    for (const message of ['hello', 'call', 'pay']) {
      const created = await post(`${url}/threads`, 'POST', { agent: 'loud', message })
      ids.push(created['id'] as string)
    }
    for (const id of ids) {
      await fetch(`${url}/threads/${id}/result`)
      await post(`${url}/threads/${id}`, 'PATCH', {
        title: everything.slice(0, 250),
        tags: ['\u001b]0;x\u0007'],
      })
    }
    expectShown(await show(['thread', 'list'], { cwd }), 'thread list')
    for (const id of ids) {
      expectShown(await show(['thread', 'show', id], { cwd }), 'thread show')
      expectShown(await show(['thread', 'tail', id, '--until-parked'], { cwd }), 'thread tail')
    }
    const differs = new Terminal(['thread', 'diff', ids[0]!, ids[1]!], { cwd })
    expect(await differs.ended).toBe(1)
    expectShown(differs.output, 'thread diff')
    expect(differs.output).toContain('\u001b[31m') // what only the first has is red
    expect(differs.output).toContain('\u001b[32m')
    expect(differs.output).toMatch(/@@ step 1: message of the user, the first difference @@/)
    const inbox = await show(['inbox'], { cwd })
    expectShown(inbox, 'inbox')
    expectVisible(inbox)
    const approved = await show(['approve', ids[2]!, '--yes', '--follow'], { cwd })
    expectShown(approved, 'approve')
    expectVisible(approved)
  })

  test('a chat with an approval prompt', async () => {
    const cwd = tempFolder()
    const chat = new Terminal(['chat', 'loud', '--folder', agents], { cwd })
    await chat.until('> ')
    chat.type('hello\r')
    await chat.until('That is all.')
    await chat.until('> ')
    chat.type('pay\r')
    await chat.until('Approve')
    expectVisible(chat.output)
    chat.type('y\r')
    await chat.until('After the call')
    await chat.until('> ')
    chat.type('\r')
    await chat.ended
    expectShown(chat.output, 'chat')
  })

  test('names of agents and errors that a file of definitions brings', async () => {
    const cwd = tempFolder()
    const output = await show(['run', `no\u001b]0;PWNED\u0007such`, 'x', '--folder', agents], {
      cwd,
    })
    expectShown(output, 'an error')
  })
})

/** The argument that matters is on the screen, and nothing pushes it off. */
function expectVisible(output: string): void {
  expect(output).toContain(HIDDEN_ARGUMENT)
  expect(output).not.toContain(SPACES.slice(0, 200))
}

async function post(url: string, method: string, body: object): Promise<Record<string, unknown>> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(url, { method, headers, body: JSON.stringify(body) })
  expect(response.ok).toBe(true)
  return (await response.json()) as Record<string, unknown>
}

describe.skipIf(typeof pty === 'string')('approve in a terminal', { timeout }, () => {
  test('shows the call and asks; only the word approves, and everything else leaves the call waiting', async () => {
    const cwd = tempFolder()
    const waiting = await show(['run', 'refunds', 'Please refund order O-7'], { cwd })
    const id = /thread ([\w-]{36})/.exec(waiting)![1]!
    for (const answer of ['', 'agents please', 'no', 'a']) {
      const asked = new Terminal(['approve', id], { cwd })
      await asked.until('refunds asks: refund {"order":"O-7","amount":25}')
      await asked.until('Type yes to approve')
      expect(asked.output).not.toContain('approved:')
      asked.type(`${answer}\r`)
      expect(await asked.ended).toBe(3)
      expect(asked.output).toContain('Nothing was decided; the call still waits.')
    }
    const agreed = new Terminal(['approve', id], { cwd })
    await agreed.until('Type yes to approve')
    agreed.type('yes\r')
    await agreed.until('approved: refund')
    expect(await agreed.ended).toBe(0)
  })
})

describe.skipIf(typeof pty === 'string')('threads in a terminal', { timeout }, () => {
  // oxlint-disable-next-line no-control-regex
  const plain = (text: string): string => text.replaceAll(/\u001b\[[\d;?]*[A-Za-z]|\r/g, '')

  test('list has first words; tail has words; show has the subagent, who decided, and the undo', async () => {
    const cwd = tempFolder()
    await show(['run', 'support', 'Write a label for the oak loom'], { cwd })
    const waiting = plain(await show(['run', 'refunds', 'Please refund order O-7'], { cwd }))
    const id = /thread ([\w-]{36})/.exec(waiting)![1]!
    const list = plain(await show(['thread', 'list'], { cwd })).split('\n')
    expect(list[0]).toMatch(/ refunds +waiting .* Please refund order O-7$/)
    const labelled = list.find((line) => line.endsWith('Write a label for the oak loom'))!
    expect(labelled).toMatch(/ support +idle /)
    expect(plain(await show(['thread', 'show', id], { cwd }))).toMatch(
      /^waiting for approval: refund .*undone by undo_refund/m,
    )
    await show(['approve', id, '--yes'], { cwd })
    const shown = plain(await show(['thread', 'show', id], { cwd }))
    expect(shown).toMatch(/^refund .*: approved by \S+ \(undone by undo_refund /m)
    expect(shown).not.toContain('waiting for approval')
    expect(plain(await show(['thread', 'show', labelled.split(' ')[0]!], { cwd }))).toMatch(
      /^subagent asset_subagent · \w+ · \d+ tokens · [\w-]{36}$/m,
    )
    const tail = plain(await show(['thread', 'tail', id], { cwd }))
    const lines = tail
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/^\d+ +[\d:.]{12} refunds /, ''))
    for (const text of [
      'thread_created refunds',
      'session_start {"agent":"refunds"}',
      'turn_start refunds/a',
      'step_end',
      'evidence_added tool_result of look_up_order',
      'interrupt_answered approved by ',
      'turn_end completed (response)',
      'status_changed idle',
    ])
      expect(lines.some((line) => line.startsWith(text)) ? text : lines).toBe(text)
  })
})
