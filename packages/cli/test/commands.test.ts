import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sqliteStore } from '@skein/runtime'
import { describe, expect, test } from 'vitest'
import { exampleAgents, skein, startDev, tempFolder, type Ended } from './kit.ts'

/** A machine with other work takes its time to start processes. */
const timeout = 60_000

describe('thread', { timeout }, () => {
  test('without a server, list and tail read the store', async () => {
    const cwd = tempFolder()
    const empty = await skein(['thread', 'list'], { cwd })
    expect(empty).toMatchObject({ code: 0, stdout: '' })
    expect(empty.stderr).toContain('No threads yet.')
    const ran = JSON.parse((await skein(['run', 'support', 'O-7?', '--json'], { cwd })).stdout)
    const tailed = await skein(['thread', 'tail', ran.thread.id], { cwd })
    expect(tailed.code).toBe(0)
    expect(tailed.stdout).toMatch(/^1 +[\d:.]+ support thread_created /)
    expect(tailed.stdout).toMatch(/ session_end /)

    // Each event is shown with the agent of its time, also when the thread was handed over later.
    const lines = (await skein(['thread', 'export', ran.thread.id], { cwd })).stdout
    const [header, ...rest] = lines
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const seq = header.events + 1
    const agents = { fromAgentId: 'support/a', toAgentId: 'refunds/a' }
    const event = { type: 'agent_handoff', at: header.exportedAt, turnId: 't', ...agents }
    const renamed = { type: 'thread_updated', at: header.exportedAt, title: 'After' }
    const input = [
      { ...header, events: seq + 1 },
      ...rest.slice(0, header.events),
      { seq, event },
      { seq: seq + 1, event: renamed },
      ...rest.slice(header.events),
    ]
      .map((line) => JSON.stringify(line))
      .join('\n')
    const imported = await skein(['thread', 'import', '-', '--json'], { cwd, input })
    const { id } = JSON.parse(imported.stdout)
    const tail = async (...more: string[]): Promise<string[]> =>
      (await skein(['thread', 'tail', id, ...more], { cwd })).stdout.trimEnd().split('\n')
    const whole = await tail()
    expect(whole[0]).toMatch(/^1 +[\d:.]+ support thread_created /)
    expect(whole.at(-2)).toMatch(/ support agent_handoff to refunds\/a$/)
    expect(whole.at(-1)).toMatch(/ refunds thread_updated /)
    expect(await tail('--after', String(seq))).toEqual(whole.slice(seq))
  })

  test('list, show, export, import, fork and stop', async () => {
    const cwd = tempFolder()
    await startDev([], { cwd })
    const thread = (...args: string[]): Promise<Ended> => skein(['thread', ...args], { cwd })
    const ran = JSON.parse((await skein(['run', 'support', 'O-7?', '--json'], { cwd })).stdout)
    const { id } = ran.thread as { id: string }
    const [list, shown, exported, document, wrong] = await Promise.all([
      thread('list', '--json'),
      thread('show', id.slice(-8)),
      thread('export', id),
      thread('export', id, '--format', 'thread'),
      thread('show', 'nowhere'),
    ])
    expect(JSON.parse(list.stdout)).toEqual({ threads: [ran.thread] })
    expect(shown.stdout).toContain('user: O-7?\na calls look_up_order {"order":"O-7"}\n')
    expect(JSON.parse(document.stdout).thread_id).toBe(id)
    expect(wrong).toMatchObject({ code: 1, stdout: '' })
    expect(wrong.stderr).toContain('There is no thread nowhere. [THREAD_NOT_FOUND]')

    const [imported, forked, stopped] = await Promise.all([
      skein(['thread', 'import', '-', '--json'], { cwd, input: exported.stdout }),
      thread('fork', id),
      thread('stop', id),
    ])
    expect(JSON.parse(imported.stdout)).toMatchObject({ agent: 'support', lifecycle: 'idle' })
    expect(stopped).toMatchObject({ code: 0, stdout: '' })
    expect(forked.stdout).toMatch(/^[\w-]{36}\n$/)
    const copy = JSON.parse((await thread('show', forked.stdout.trim(), '--json')).stdout)
    expect(copy.messages).toHaveLength(4)
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

describe('limits', { timeout }, () => {
  test('says that there are none, also as JSON', async () => {
    const cwd = tempFolder()
    const none = await skein(['limits'], { cwd })
    expect(none).toMatchObject({ code: 0, stdout: '' })
    expect(none.stderr).toContain('Nothing was spent under a limit, and nothing was removed.')
    const { stdout } = await skein(['limits', '--json'], { cwd })
    expect(JSON.parse(stdout)).toEqual({ spending: [], retention: [] })
  })

  test('shows what was spent, refused and removed', async () => {
    const cwd = tempFolder()
    mkdirSync(join(cwd, '.skein'))
    const store = sqliteStore({ path: join(cwd, '.skein', 'skein.db') })
    const account = 'limit of 3600000 0 ["user","default","ann"]'
    const counters = Object.entries({
      [`${account} spent nanoUsd`]: 2e9,
      [`${account} held nanoUsd`]: 2.5e9,
      [`${account} spent tokens`]: 70,
      [`${account} held tokens`]: 70,
      [`${account} refused`]: 3,
      'limit retention "default" erased': 4,
    }).map(([name, add]) => ({ name, add }))
    await store.commit({ point: 'test', threads: [], counters })
    await store.close()
    const { stdout, code } = await skein(['limits'], { cwd })
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^user ann of default +until 1970-01-01T01:00:00.000Z +\$2.5 +70 tokens +0 requests +3 refused +0 delayed$/m,
    )
    expect(stdout).toContain('tenant default: 4 threads erased, 0 removed, 0 kept')
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
