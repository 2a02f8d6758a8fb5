import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sqliteStore } from '@skein/runtime'
import { describe, expect, test } from 'vitest'
import { badAgents, exampleAgents, skein, startDev, tempFolder, type Ended } from './kit.ts'

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

    // As `diff` does: 0 is the same, 1 is different, 2 is trouble.
    const fork = forked.stdout.trim()
    const asked = JSON.parse((await skein(['run', 'support', 'O-8?', '--json'], { cwd })).stdout)
    const [same, branch, differs, data, alone, nobody, cut] = await Promise.all([
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
    expect(nobody).toMatchObject({ code: 2, stdout: '' })
    expect(nobody.stderr).toContain('[THREAD_NOT_FOUND]')
    expect(cut.code).toBe(0) // a reader that goes away is no trouble
    expect(cut.stderr).toBe('')
  })
})

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
