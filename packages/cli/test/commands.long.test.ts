import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { badAgents, exampleAgents, skein, startDev, tempFolder, type Ended } from './kit.ts'

/** A machine with other work takes its time to start processes. */
const timeout = 60_000

describe('provide', { timeout }, () => {
  test('gives a subagent what it waits for, once, from a file or a pipe; no output has the values', async () => {
    const cwd = tempFolder()
    const write = (path: string, text: string): void => {
      mkdirSync(join(cwd, 'defs', path, '..'), { recursive: true })
      writeFileSync(join(cwd, 'defs', path), text)
    }
    const prompt = (name: string, rest: string): void =>
      write(
        `prompts/${name}.ts`,
        `import { definePrompt } from '@skein/runtime'
        import { calls, says, scripted } from '@skein/ai/testing'
        export default definePrompt({ name: '${name}', prompt: 'Work.', ${rest} })`,
      )
    const agent = (name: string, rest: string): void =>
      write(
        `agents/${name}.ts`,
        `import { defineAgent } from '@skein/runtime'
        export default defineAgent({ name: '${name}', ${rest} })`,
      )
    prompt(
      'boss',
      `model: scripted(({ messages }) => messages.at(-1).type === 'user' && messages.at(-1).text === 'Go'
        ? calls('courier', { message: 'Bring it.' }) : says('Asked.')),
      tools: [{ name: 'courier', initUserMessageProperty: 'message' }]`,
    )
    prompt(
      'courier',
      `model: scripted(() => says('Brought.')), variables: [
        { name: 'VAULT_CODE', type: 'secret', required: true, scoped: true },
        { name: 'CITY', type: 'text', required: true, scoped: true }]`,
    )
    prompt('review', `model: scripted(() => says('Fine.'))`)
    agent('boss', `sideA: { prompt: 'boss' }`)
    agent(
      'courier',
      `type: 'dual_ai', exposeAsTool: true, toolDescription: 'Brings.', maxSessionTurns: 2,
      sideA: { prompt: 'courier' }, sideB: { prompt: 'review' }`,
    )
    await startDev(['defs'], { cwd })
    const ran = JSON.parse((await skein(['run', 'boss', 'Go', '--json'], { cwd })).stdout)
    const { id } = ran.thread as { id: string }
    const inbox = await skein(['inbox'], { cwd })
    expect(inbox.stdout).toContain('boss needs VAULT_CODE (secret), CITY (text) for courier')
    const input = 'VAULT_CODE=canary-of-a-code\n'
    const [few, wrong] = await Promise.all([
      skein(['provide', id], { cwd, input }),
      skein(['provide', 'nowhere'], { cwd, input }),
    ])
    expect(few.code).toBe(1)
    expect(few.stderr).toContain('also needs CITY')
    expect(wrong.stderr).toContain('No request for variables matches nowhere.')
    writeFileSync(join(cwd, 'values.env'), `${input}CITY=Ulm\n`)
    const given = await skein(['provide', id.slice(-8), '--file', 'values.env', '--json'], { cwd })
    expect(given.code).toBe(0)
    expect(JSON.parse(given.stdout)).toMatchObject({ threadId: id, type: 'provide' })
    const after = await skein(['provide', id], { cwd, input: `${input}CITY=Ulm\n` })
    expect(after.code).toBe(1)
    for (const { stdout, stderr } of [inbox, few, wrong, given, after])
      expect(stdout + stderr).not.toContain('canary')
  })
})

describe('check --against', { timeout }, () => {
  const refund = ['run', 'payer', 'Pay.', '--folder', badAgents]

  test('lists what a deploy would strand, ends with 1, and writes nothing', async () => {
    const cwd = tempFolder()
    expect((await skein(refund, { cwd })).code).toBe(3)
    const same = await skein(['check', badAgents, '--against', '.skein'], { cwd })
    expect(same.stderr).toContain('1 threads read: none would be stranded.')
    expect({ code: same.code, stdout: same.stdout }).toEqual({ code: 0, stdout: '' })

    const next = join(badAgents, '..', 'agents-next') // without the tool
    const before = readFileSync(join(cwd, '.skein', 'skein.db'))
    const file = join('.skein', 'skein.db')
    const stranded = await skein(['check', next, '--against', file], { cwd })
    expect(stranded.stdout).toMatch(
      /^\S+: tool_gone: agent "payer": The call \S+ of "pay" is open, and the tool is gone: the call fails\.\n$/,
    )
    expect(stranded.code).toBe(1)
    expect(readFileSync(join(cwd, '.skein', 'skein.db')).equals(before)).toBe(true)

    const pinned = await skein(['check', next, '--against', file, '--pinned', '--json'], { cwd })
    expect(JSON.parse(pinned.stdout)).toMatchObject({
      problems: [],
      stranded: { count: 1, findings: [{ problem: 'agent_changed', subject: 'payer' }] },
    })
  })

  test('a store that does not exist is an error that names it', async () => {
    const { code, stderr } = await skein(['check', exampleAgents, '--against', 'nowhere'], {
      cwd: tempFolder(),
    })
    expect(code).toBe(1)
    expect(stderr).toContain('nowhere')
  })
})

describe('models', { timeout }, () => {
  test('with a key in the environment the examples use the real model, and say so', async () => {
    const { stderr } = await skein(['run', 'support', 'Hi', '--timeout', '1ms'], {
      cwd: tempFolder(),
      // An address that refuses, so that nothing leaves this machine.
      env: { OPENAI_API_KEY: 'canary-value', HTTPS_PROXY: 'http://127.0.0.1:9' },
    })
    expect(stderr).toContain('openai gpt-5-mini\n')
    expect(stderr).not.toContain('canary-value')
  })
})

describe('thread diff', { timeout }, () => {
  test('compares a thread with its fork and with another thread', async () => {
    const cwd = tempFolder()
    await startDev([], { cwd })
    const thread = (...args: string[]): Promise<Ended> => skein(['thread', ...args], { cwd })
    const ran = JSON.parse((await skein(['run', 'support', 'O-7?', '--json'], { cwd })).stdout)
    const { id } = ran.thread as { id: string }
    const fork = (await thread('fork', id)).stdout.trim()

    // As `diff` does: 0 is the same, 1 is different, 2 is trouble.
    const asked = JSON.parse((await skein(['run', 'support', 'O-8?', '--json'], { cwd })).stdout)
    const [same, branch, differs, data, alone, unknown, cut] = await Promise.all([
      thread('diff', id, fork),
      thread('diff', fork),
      thread('diff', id, asked.thread.id),
      thread('diff', id, asked.thread.id, '--json'),
      thread('diff', id),
      thread('diff', id, 'nowhere'),
      skein(['thread', 'diff', id, asked.thread.id], { cwd, closesStdout: true }),
    ])
    expect(same.code).toBe(0)
    expect(same.stdout).toContain(`--- ${id} · support · `)
    expect(same.stdout).toContain(' equal steps\n')
    expect(branch).toMatchObject({ code: 0, stdout: same.stdout })
    expect(differs.code).toBe(1)
    expect(differs.stdout).toContain('@@ step 1: message of the user, the first difference @@')
    expect(differs.stdout).toContain('- O-7?\n+ O-8?\n')
    expect(differs.stdout).toContain('-     "order": "O-7"\n+     "order": "O-8"\n')
    expect(differs.stdout).toMatch(/^tokens \d+ -> \d+ \(.+\)$/m)
    expect(differs.stdout).toMatch(/^cost (?:unknown|\$\S+ -> .+)$/m)
    expect(differs.stdout).toMatch(/^time of models .+, without subagents$/m)
    expect(differs.stdout).not.toContain('\u001b')
    const { firstDifference, isSame, deltas, steps, before } = JSON.parse(data.stdout)
    expect({ code: data.code, firstDifference, isSame }).toEqual({
      code: 1,
      firstDifference: 0,
      isSame: false,
    })
    expect(before).toMatchObject({ threadId: id, tokens: ran.thread.tree.tokens })
    expect(deltas.tokens).toBe(asked.thread.tree.tokens - ran.thread.tree.tokens)
    expect(steps[0]).toMatchObject({ before: { text: 'O-7?' }, after: { text: 'O-8?' } })
    expect(alone).toMatchObject({ code: 2, stdout: '' })
    expect(alone.stderr).toContain('is not a fork')
    expect(unknown).toMatchObject({ code: 2, stdout: '' })
    expect(unknown.stderr).toContain('[THREAD_NOT_FOUND]')
    expect(cut.code).toBe(0) // a reader that goes away is no trouble
    expect(cut.stderr).toBe('')
  })
})
