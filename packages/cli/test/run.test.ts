import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { badAgents, Running, skein, tempFolder } from './kit.ts'
import { summary, threadIn } from './summary.ts'

function lastLine(text: string): string {
  return text.slice(text.trimEnd().lastIndexOf('\n') + 1)
}

/** A machine with other work takes its time to start processes. */
const timeout = 60_000

describe('run, in a folder without a server', { timeout }, () => {
  test('the answer is all of standard output; words and the summary are on standard error', async () => {
    const { code, stdout, stderr } = await skein(['run', 'support', 'Where is O-7?', '--verbose'], {
      cwd: tempFolder(),
    })
    expect(stdout).toBe('Order O-7, a brass lamp, is delivered.\n')
    expect(stderr).toContain('scripted model, no key used\n')
    expect(stderr).toContain('tool look_up_order {"order":"O-7"}\n')
    expect(lastLine(stderr)).toMatch(summary)
    expect(code).toBe(0)
    expect(stdout + stderr).not.toContain('\u001B')
  })

  test('--json is one object of the HTTP API, --jsonl its events; `-` reads standard input', async () => {
    const cwd = tempFolder()
    const whole = await skein(['run', 'support', '-', '--json'], { cwd, input: 'Where is O-8?\n' })
    expect(JSON.parse(whole.stdout)).toMatchObject({
      outcome: 'completed',
      text: 'Order O-8, a set of wool yarn, is on its way.',
      waiting: [],
      thread: { agent: 'support', lifecycle: 'idle' },
    })
    expect(whole.stdout.trimEnd()).not.toContain('\n')

    const lines = await skein(['run', 'support', 'Write a label for the lamp', '--jsonl'], { cwd })
    const events = lines.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.code).toBe(0)
    for (const event of events)
      expect(event).toEqual({
        threadId: expect.any(String),
        path: expect.any(Array),
        id: expect.stringMatching(/^\d+(\.\d+)?$/),
        event: expect.objectContaining({ type: expect.any(String), at: expect.any(String) }),
      })
    const types = new Set(events.map(({ event }) => event.type))
    for (const type of ['text_delta', 'tool_execution_start', 'session_end'])
      expect(types).toContain(type)
    expect(new Set(events.map(({ path }) => path.join('/')))).toEqual(
      new Set(['support', 'support/asset_subagent']),
    )
  })

  test.each([
    { agent: 'failing', code: 1, status: 'failed (model_error)' },
    { agent: 'refused', code: 4, status: 'failed (fail_safe)' },
    { agent: 'limited', code: 5, status: 'failed (max_side_steps)' },
  ])('$agent ends with $code and says why', async ({ agent, code, status }) => {
    const ended = await skein(['run', agent, 'Go', '--folder', badAgents], { cwd: tempFolder() })
    expect(lastLine(ended.stderr)).toMatch(summary)
    expect(summary.exec(ended.stderr)!.groups!['status']).toBe(status)
    expect(ended).toMatchObject({ code, stdout: '' })
  })

  test('a missing key is said once, with the variable that is missing', async () => {
    const cwd = tempFolder()
    mkdirSync(join(cwd, 'agents'))
    writeFileSync(
      join(cwd, 'agents', 'keyless.ts'),
      `import { anthropic } from '@skein/ai/anthropic'
import { defineAgent, definePrompt } from '@skein/runtime'

const prompt = definePrompt({ name: 'keyless', prompt: 'Hi.', model: anthropic('claude-x') })

export default defineAgent({ name: 'keyless', sideA: { prompt } })
`,
    )
    const { code, stdout, stderr } = await skein(['run', 'keyless', 'Go', '--folder', '.'], { cwd })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.match(/There is no API key/g)).toHaveLength(1)
    expect(stderr.match(/ANTHROPIC_API_KEY/g)).toHaveLength(1)
  })

  test('what waits for a person ends with 3 and names thread and command; approving continues', async () => {
    const cwd = tempFolder()
    const asked = await skein(['run', 'refunds', 'Refund O-7'], { cwd })
    expect(asked).toMatchObject({ code: 3, stdout: '' })
    const thread = threadIn(asked.stderr)
    expect(asked.stderr).toContain(`skein approve ${thread} `)

    // The last letters of its id are enough, and without a server the command does the work itself.
    const approved = await skein(['approve', thread.slice(-6), '--yes'], { cwd })
    expect(approved.stderr).toContain('approved: refund {"order":"O-7","amount":25}')
    expect(approved).toMatchObject({
      code: 0,
      stdout: 'Done: 25 euros for order O-7 are on their way back.\n',
    })
  })

  test('--timeout parks the run and ends with 124; resume continues', async () => {
    const cwd = tempFolder()
    const args = ['--folder', badAgents]
    const late = await skein(['run', 'slow', 'Go', '--timeout', '300ms', ...args], {
      cwd,
      env: { SKEIN_TEST_HANGS: '1' },
    })
    expect(late).toMatchObject({ code: 124, stdout: '' })
    const thread = threadIn(late.stderr)
    expect(late.stderr).toContain(`skein thread resume ${thread}`)
    const resumed = await skein(['thread', 'resume', thread, ...args], { cwd })
    expect(resumed).toMatchObject({ code: 0, stdout: 'Finished.\n' })
  })

  test('the first Ctrl-C parks and ends with 130; resume continues', async () => {
    const cwd = tempFolder()
    const args = ['--folder', badAgents]
    const running = new Running(['run', 'slow', 'Go', '--jsonl', ...args], {
      cwd,
      env: { SKEIN_TEST_HANGS: '1' },
    })
    await running.until('stdout', '"text_delta"')
    running.signal('SIGINT')
    const { code, stderr } = await running.ended
    expect(code).toBe(130)
    expect(summary.exec(stderr)!.groups!['status']).toBe('parked')
    const resumed = await skein(['thread', 'resume', threadIn(stderr), ...args], { cwd })
    expect(resumed).toMatchObject({ code: 0, stdout: 'Finished.\n' })
  })

  test('the second Ctrl-C ends immediately, also when a tool does not listen', async () => {
    const running = new Running(['run', 'stuck', 'Go', '--folder', badAgents], {
      cwd: tempFolder(),
    })
    await running.until('stderr', 'tool stubborn')
    running.signal('SIGINT')
    await running.until('stderr', 'Ctrl-C again')
    running.signal('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130, stdout: '' })
  })

  test('a reader that leaves ends the command quietly', async () => {
    const running = new Running(['run', 'slow', 'Go', '--jsonl', '--folder', badAgents], {
      cwd: tempFolder(),
    })
    running.child.stdout.once('data', () => running.child.stdout.destroy())
    const { code, stderr } = await running.ended
    expect(code).toBe(0)
    expect(stderr).not.toMatch(/EPIPE|error|at /i)
  })

  test('colours when forced, never with NO_COLOR or --no-color', async () => {
    const cwd = tempFolder()
    const env = { FORCE_COLOR: '1' }
    const colored = await skein(['nonsense'], { cwd, env })
    expect(colored.stderr).toContain('\u001B[31m')
    const silent = await skein(['nonsense'], { cwd, env: { ...env, NO_COLOR: '1' } })
    const flagged = await skein(['nonsense', '--no-color'], { cwd, env })
    expect(silent.stderr + flagged.stderr).not.toContain('\u001B')
  })
})
