import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, test } from 'vitest'
import { addThreads, valueSet } from '../../testing/contract.ts'
import { sqliteStore } from './sqlite-store.ts'
import { sqliteFailure } from './sqlite-failure.ts'
import type { Store } from '../store.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-limits-'))
let count = 0
const newFolder = (): string => join(folder, `${count++}`)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const fill = (store: Store, id: string): Promise<unknown> =>
  store.commit({ point: 'test', threads: [{ id, append: [valueSet('x'.repeat(20_000))] }] })

describe('a full store', () => {
  test('refuses with STORE_FULL, keeps what it has, and works again when there is space', async () => {
    const path = join(newFolder(), 'skein.db')
    const store = sqliteStore({ path, maxBytes: 1_000_000 })
    await addThreads(store, 'kept', 'big')
    await fill(store, 'kept')
    let filled = 0
    const error = await (async () => {
      for (;;) {
        try {
          await fill(store, 'big')
          filled++
        } catch (thrown) {
          return thrown
        }
      }
    })()
    expect(error).toMatchObject({ name: 'StoreError', code: 'STORE_FULL' })
    expect((error as { hint: string }).hint).toContain('space')
    // Several commits in one transaction: a full disk ends the transaction, and each is told.
    const outcomes = await Promise.allSettled([fill(store, 'big'), fill(store, 'kept')])
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'STORE_FULL' } })
    expect((await store.events('big')).length).toBe(filled)
    expect((await store.events('kept')).length).toBe(1)
    expect(await store.check()).toEqual([])
    await store.remove('big')
    await fill(store, 'kept')
    expect((await store.events('kept')).length).toBe(2)
    await store.close()
    const again = sqliteStore({ path })
    expect((await again.events('kept')).length).toBe(2)
    await again.close()
  })
})

describe('what the operating system refuses', () => {
  test.each([
    [{ errcode: 13 }, 'STORE_FULL'],
    [{ code: 'ENOSPC' }, 'STORE_FULL'],
    [{ errcode: 8 | (1 << 8) }, 'STORE_READ_ONLY'],
    [{ code: 'EROFS' }, 'STORE_READ_ONLY'],
    [{ errcode: 18 }, 'STORE_LIMIT'],
    [{ errcode: 10 | (3 << 8) }, 'STORE_LIMIT'],
    [{ code: 'EFBIG' }, 'STORE_LIMIT'],
    [{ errcode: 11 }, 'STORE_CORRUPT'],
  ])('%j is %s', (members, code) => {
    const cause = Object.assign(new Error('refused'), members)
    expect(sqliteFailure(cause, '/data/skein.db')).toMatchObject({ code, cause })
  })

  test('a file size limit (ulimit -f): nothing hangs, and work goes on when it is raised', async () => {
    const data = newFolder()
    const child = spawn(
      'bash',
      ['-c', 'ulimit -S -f 600; exec "$0" "$@"', ...node(growing(data))],
      {
        stdio: ['pipe', 'pipe', 'pipe'],
      },
    )
    const errors = text(child.stderr)
    const lines: string[] = []
    let told = ''
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      told += chunk as string
      if (!told.includes('refused') || lines.length > 0) continue
      lines.push(told)
      // Not every system has the command; without it, the second half is not checked.
      const raised = spawn('prlimit', ['--pid', String(child.pid), '--fsize=unlimited'])
      const [code] = (await once(raised, 'exit').catch(() => [1])) as [number]
      child.stdin.end(code === 0 ? 'again\n' : 'stop\n')
    }
    await (child.exitCode === null ? once(child, 'exit') : undefined)
    expect(await errors).toBe('')
    expect(told).toMatch(/^refused STORE_LIMIT( and works again)?\n$/)
    const store = sqliteStore({ path: join(data, 'skein.db') })
    expect(await store.check()).toEqual([])
    await store.close()
  }, 60_000)

  test('a folder that may not be written is STORE_READ_ONLY, with what to do', async () => {
    const data = newFolder()
    mkdirSync(data)
    await sqliteStore({ path: join(data, 'skein.db') }).close()
    for (const name of ['skein.db', 'skein.db.lock'])
      if (existsSync(join(data, name))) chmodSync(join(data, name), 0o444)
    chmodSync(data, 0o555)
    chmodSync(folder, 0o755)
    const program = `
      import { sqliteStore } from ${JSON.stringify(import.meta.resolve('./sqlite-store.ts'))}
      for (const path of process.argv.slice(1))
        try {
          sqliteStore({ path })
          console.log('opened')
        } catch ({ name, code, hint }) {
          console.log(name, code, hint)
        }`
    // The superuser may write everything, so the test then runs as somebody else.
    const isRoot = process.getuid?.() === 0
    const paths = [join(data, 'skein.db'), join(data, 'new.db')]
    const [command = '', ...args] = [...node(program), ...paths]
    const child = spawn(command, args, {
      stdio: 'pipe',
      ...(isRoot && { uid: 65_534, gid: 65_534 }),
    })
    const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
    chmodSync(data, 0o755)
    expect(errors).toBe('')
    const lines = out.trimEnd().split('\n')
    expect(lines).toHaveLength(2)
    for (const line of lines)
      expect(line).toMatch(/^StoreError STORE_READ_ONLY .*read-only.*folder/)
  })
})

/** The command that runs a program. */
function node(program: string): string[] {
  const flags = ['--conditions=@skein/source', '--input-type=module-typescript', '-e']
  return [process.execPath, ...flags, program]
}

/** Talks to an agent until the store refuses; then, when told to, once more. */
function growing(data: string): string {
  return `
    import { once } from 'node:events'
    import { createRuntime, defineAgent, definePrompt } from ${resolved('../../index.ts')}
    import { scripted, says } from '@skein/ai/testing'
    const model = scripted(Array.from({ length: 200 }, () => says('word '.repeat(4_000))))
    const prompt = definePrompt({ name: 'p', prompt: 'Talk.', model })
    const agent = defineAgent({ name: 'talker', type: 'ai_human', sideA: { prompt } })
    const runtime = await createRuntime({
      agents: [agent], folder: ${JSON.stringify(data)}, secretKey: new Uint8Array(32),
    })
    await runtime.start()
    const { id } = await runtime.threads.create({ agent: 'talker' })
    let code
    for (let i = 0; i < 150 && !code; i++)
      try {
        await runtime.threads.run(id, 'x'.repeat(10_000))
      } catch (error) {
        code = error.code
      }
    process.stdout.write('refused ' + code)
    const [word] = await once(process.stdin, 'data')
    if (String(word) === 'again\\n') {
      const isSettled = () => runtime.threads.settled(id).then(() => true, () => false)
      while (!(await isSettled())) await new Promise((resolve) => setTimeout(resolve, 50))
      const { outcome } = await runtime.threads.run(id, 'and now?')
      if (outcome === 'completed') process.stdout.write(' and works again')
    }
    process.stdout.write('\\n')
    await runtime.stop()`
}

function resolved(file: string): string {
  return JSON.stringify(import.meta.resolve(file))
}
