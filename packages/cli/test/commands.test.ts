import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exampleAgents, skein, tempFolder, type Ended } from './kit.ts'

/** A machine with other work takes its time to start processes. */
const timeout = 120_000

describe('thread', { timeout }, () => {
  test('list, show, tail, export, import, fork and stop, without a server', async () => {
    const cwd = tempFolder()
    const thread = (...args: string[]): Promise<Ended> => skein(['thread', ...args], { cwd })
    const empty = await thread('list')
    expect(empty).toMatchObject({ code: 0, stdout: '' })
    expect(empty.stderr).toContain('No threads yet.')
    const ran = JSON.parse((await skein(['run', 'support', 'O-7?', '--json'], { cwd })).stdout)
    const { id } = ran.thread as { id: string }

    const list = JSON.parse((await thread('list', '--json')).stdout)
    expect(list.threads).toEqual([ran.thread])
    const shown = await thread('show', id.slice(-8))
    expect(shown.stdout).toContain('user: O-7?\na calls look_up_order {"order":"O-7"}\n')
    const tailed = await thread('tail', id, '--until-parked')
    expect(tailed.stdout).toMatch(/^1 +[\d:.]+ support thread_created /)

    const exported = await thread('export', id)
    const imported = await skein(['thread', 'import', '-', '--json'], {
      cwd,
      input: exported.stdout,
    })
    expect(JSON.parse(imported.stdout)).toMatchObject({ agent: 'support', lifecycle: 'idle' })
    const forked = await thread('fork', id)
    expect(forked.stdout).toMatch(/^[\w-]{36}\n$/)
    const copy = JSON.parse((await thread('show', forked.stdout.trim(), '--json')).stdout)
    expect(copy.messages).toHaveLength(4)
    expect(await thread('stop', id)).toMatchObject({ code: 0, stdout: '' })
    const document = JSON.parse((await thread('export', id, '--format', 'thread')).stdout)
    expect(document.thread_id).toBe(id)

    const wrong = await thread('show', 'nowhere')
    expect(wrong).toMatchObject({ code: 1, stdout: '' })
    expect(wrong.stderr).toContain('There is no thread nowhere. [THREAD_NOT_FOUND]')
  })
})

describe('chat', { timeout }, () => {
  test('answers each line that is piped in, and ends with 3 where a person is needed', async () => {
    const input = 'Hello\nWhere is O-8?\nRefund it: O-8\nNever reached\n'
    const { code, stdout, stderr } = await skein(['chat', 'support'], { cwd: tempFolder(), input })
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^This is the support desk\./),
      'Order O-8, a set of wool yarn, is on its way.',
      '',
    ])
    expect(stderr).toContain('waiting for approval: refund {"order":"O-8","amount":12}')
    expect(code).toBe(3)
  })
})

describe('check', { timeout }, () => {
  test('lists every problem with file and field, and ends with 1', async () => {
    const cwd = tempFolder()
    mkdirSync(join(cwd, 'agents'))
    writeFileSync(
      join(cwd, 'agents', 'a.ts'),
      `export default { name: 'a', sideA: { prompt: 'p' } }`,
    )
    writeFileSync(join(cwd, 'agents', 'b.ts'), `export default { name: 'b', sideA: {}, nmae: 1 }`)
    writeFileSync(join(cwd, 'agents', 'c.ts'), `export const c = 1`)
    const { code, stdout } = await skein(['check'], { cwd })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^agents\/a\.ts: agent "a": sideA\.prompt: .*"p"/m)
    expect(stdout).toMatch(/^agents\/b\.ts: agent "b": sideA\.prompt: /m)
    expect(stdout).toMatch(/^agents\/b\.ts: agent "b": nmae: .*name/m)
    expect(stdout).toMatch(/^agents\/c\.ts: has no default export/m)
    const whole = await skein(['check', '--json'], { cwd })
    expect(JSON.parse(whole.stdout).problems).toHaveLength(stdout.trimEnd().split('\n').length)
  })

  test('the examples have none', async () => {
    const { code, stdout } = await skein(['check', exampleAgents], { cwd: tempFolder() })
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  })
})

describe('doctor', { timeout }, () => {
  test('names keys and never shows them', async () => {
    const { code, stdout, stderr } = await skein(['doctor'], {
      cwd: tempFolder(),
      env: { OPENAI_API_KEY: 'canary-value' },
    })
    expect(code).toBe(0)
    expect(stdout).toMatch(/^ok +keys +OPENAI_API_KEY$/m)
    for (const name of ['node', 'store', 'server', 'port']) expect(stdout).toContain(` ${name} `)
    expect(stdout + stderr).not.toContain('canary-value')
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
