import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { crashtest, printed, problems, WORLD } from './crashtest-kit.ts'
import { skein } from './kit.ts'
import { project } from './project.ts'

/** Pays and then notes that it has paid. */
const DOUBLES = `
import { existsSync, writeFileSync } from 'node:fs'
if (!existsSync('paid')) {
  await fetch('https://bank.test/refunds', { method: 'POST', body: '{"order":"O-7"}' })
  writeFileSync('paid', '')
}
`
/** Notes that it pays, and then pays. */
const LOSES = `
import { existsSync, writeFileSync } from 'node:fs'
if (!existsSync('paid')) {
  writeFileSync('paid', '')
  await fetch('https://bank.test/refunds', { method: 'POST', body: '{"order":"O-7"}' })
}
`
/** Asks before it pays. */
const ASKS = `
import { existsSync } from 'node:fs'
const book = await (await fetch('https://bank.test/refunds')).json()
if (!book.paid) await fetch('https://bank.test/refunds', { method: 'POST', body: '{"order":"O-7"}' })
`
const BANK = `export default () => {
  let paid = false
  return (request) => {
    if (request.method === 'POST') paid = true
    return Response.json({ paid })
  }
}
`

describe('skein crashtest', { timeout: 120_000 }, () => {
  test('a program that pays before it notes it pays twice; the report says where, twice the same', async () => {
    const cwd = project({ 'app.js': DOUBLES, 'world.js': WORLD })
    const args = ['crashtest', 'app.js', '--world', 'world.js']
    const first = await skein([...args, '--junit', 'one.xml'], { cwd })
    expect(first.stdout).toBe(
      [
        'effect                                          expected  happened           crash points',
        'POST https://bank.test/refunds {"order":"O-7"}  1         1         same     1 of 2',
        '                                                          2         doubled  1: after POST https://bank.test/refunds',
        '',
        '2 crashes: 1 doubled, 0 lost.',
        '',
      ].join('\n'),
    )
    expect(first).toMatchObject({ code: 1, stderr: '' })
    const second = await skein([...args, '--junit', 'two.xml'], { cwd })
    expect(second).toEqual(first)
    const junit = readFileSync(join(cwd, 'one.xml'), 'utf8')
    expect(readFileSync(join(cwd, 'two.xml'), 'utf8')).toBe(junit)
    expect(junit).toBe(
      [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<testsuite name="skein crashtest app.js" tests="2" failures="1" skipped="0">',
        '  <testcase classname="app.js" name="before POST https://bank.test/refunds"/>',
        '  <testcase classname="app.js" name="after POST https://bank.test/refunds">',
        '    <failure message="doubled: POST https://bank.test/refunds {&quot;order&quot;:&quot;O-7&quot;} (2 instead of 1)"/>',
        '  </testcase>',
        '</testsuite>',
        '',
      ].join('\n'),
    )
    // The folder itself was not touched.
    expect(readdirSync(cwd).toSorted()).toEqual(
      ['app.js', 'node_modules', 'one.xml', 'package.json', 'two.xml', 'world.js'].toSorted(),
    )
  })

  test('a program that notes a payment before it pays loses it', async () => {
    const result = await crashtest(LOSES, ['--json'])
    expect(result.code).toBe(1)
    expect(printed(result)).toMatchObject({ ok: false, summary: '2 crashes: 0 doubled, 1 lost.' })
    expect(problems(printed(result))).toEqual(['lost before 1'])
  })

  test('a program that asks before it pays passes, and each crash begins with a new world', async () => {
    const cwd = project({ 'app.js': ASKS, 'world.js': BANK })
    const args = ['crashtest', 'app.js', '--world', 'world.js', '--json', '--jobs', '2']
    const result = await skein(args, { cwd })
    expect(printed(result)).toMatchObject({
      ok: true,
      available: 4,
      summary: '4 crashes: 0 doubled, 0 lost.',
      steps: [
        { number: 1, kind: 'request', name: 'GET https://bank.test/refunds' },
        { number: 2, kind: 'request', name: 'POST https://bank.test/refunds' },
      ],
    })
    expect(result.code).toBe(0)
  })

  test('a repeated idempotency key counts as one, and the report says so', async () => {
    const program = DOUBLES.replace(
      "method: 'POST',",
      "method: 'POST', headers: { 'x-key': 'O-7' },",
    )
    const args = ['--idempotency-header', 'X-Key']
    const { code, stdout } = await crashtest(program, args)
    expect(stdout).toContain(
      '1 time a request was repeated with the same idempotency key, which counts as one.\n2 crashes: 0 doubled, 0 lost.',
    )
    expect(code).toBe(0)
  })

  test('a field that differs each time can be left out of the comparison', async () => {
    const program = `await fetch('https://bank.test/a', { method: 'POST', body: JSON.stringify({ n: 1, at: Math.random() }) })`
    const compared = printed(await crashtest(program, ['--json']))
    expect(compared.points[0]!.effects.map(({ verdict }) => verdict)).toEqual([
      'changed',
      'changed',
    ])
    expect(compared.ok).toBe(false) // after the request it is sent again
    const ignored = printed(await crashtest(program, ['--json', '--ignore-field', 'at']))
    expect(problems(ignored)).toEqual(['doubled after 1'])
  })

  test('lines of a file count as effects, and commits of node:sqlite are crash points', async () => {
    const program = `
import { appendFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
const database = new DatabaseSync('state.db')
database.exec('PRAGMA journal_mode = WAL')
if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'sent'").get()) {
  appendFileSync('mails.txt', 'To Pat\\n')
  database.exec('BEGIN; CREATE TABLE sent (one); COMMIT')
}
`
    const result = printed(await crashtest(program, ['--json', '--effects', 'mails.txt']))
    expect(result.steps).toEqual([{ number: 1, kind: 'commit', name: 'commit state.db' }])
    expect(problems(result)).toEqual(['doubled before 1'])
    expect(result.points[0]!.effects[0]).toMatchObject({ effect: 'mails.txt To Pat', times: 2 })
  })

  test('--max-points and --seed choose crash points', async () => {
    const program = `for (const one of [1, 2, 3]) await fetch('https://bank.test/' + one, { method: 'PUT' })`
    const choose = async (seed: string): Promise<string[]> =>
      printed(await crashtest(program, ['--json', '--max-points', '2', '--seed', seed])).points.map(
        ({ step, when }) => `${when} ${step.number}`,
      )
    const [one, again, other] = await Promise.all([choose('1'), choose('1'), choose('2')])
    expect(one).toHaveLength(2)
    expect(again).toEqual(one)
    expect(other).not.toEqual(one)
  })

  test('a program that cannot recover is reported, with its exit code', async () => {
    const program = `
import { existsSync, writeFileSync } from 'node:fs'
if (existsSync('lock')) throw new Error('locked')
writeFileSync('lock', '')
await fetch('https://bank.test/a', { method: 'POST' })
`
    const { code, stdout } = await crashtest(program, ['--restarts', '1'])
    expect(stdout).toContain(
      'after POST https://bank.test/a: the program ended with exit code 1 after 3 starts.',
    )
    expect(code).toBe(1)
    const held = await crashtest(`${LOSES}else process.exit(7)`, ['--held-code', '7', '--json'])
    expect(problems(printed(held))).toEqual(['held before 1'])
    expect(held.code).toBe(0)
  })

  test('a server gets a request until it is answered, and is stopped when it is quiet', async () => {
    const program = `
import { createServer } from 'node:http'
createServer(async (request, response) => {
  await fetch('https://bank.test/refunds', { method: 'POST', body: '{}' })
  response.end('done')
}).listen(Number(process.argv[2]), '127.0.0.1', () => console.log('listening'))
`
    const port = await freePort()
    const send = `POST http://127.0.0.1:${port}/refunds {"order":"O-7"}`
    const args = [String(port), '--ready', 'listening', '--send', send, '--json']
    const result = printed(await crashtest(program, args))
    expect(problems(result)).toEqual(['doubled after 1'])
    expect(result.points.map(({ ending, starts }) => [ending, starts])).toEqual([
      ['ended', 2],
      ['ended', 2],
    ])
  })
})

describe('what cannot be tested is said', { timeout: 120_000 }, () => {
  test.each<{ program: string; args?: readonly string[]; says: string; hint: string }>([
    {
      program: `console.error('boom'); process.exit(3)`,
      says: 'The program ended with exit code 3 without a crash. [CRASHTEST_BASELINE]',
      hint: 'Its output:\nboom',
    },
    {
      program: `setInterval(() => undefined, 1000)`,
      args: ['--timeout', '1s'],
      says: 'The program did not end within 1 s without a crash. [CRASHTEST_BASELINE]',
      hint: 'If it is a server, use --ready, --send and --until',
    },
    {
      program: ``,
      says: 'sent no request and stored nothing with node:sqlite',
      hint: 'Requests through fetch, http and https are seen',
    },
    {
      program: `await fetch('https://bank.test/book')`,
      says: 'The program changed nothing that crashtest can count. [CRASHTEST_BASELINE]',
      hint: '--effects <file>',
    },
    {
      program: `await fetch('https://api.example.com/v1/refunds', { method: 'POST' })`,
      says: 'The program wants to reach another machine: POST https://api.example.com/v1/refunds',
      hint: '--world <file>, leave it out with --ignore, or allow it with --allow-host api.example.com.',
    },
    {
      program: `await fetch('https://bank.test/fails', { method: 'POST', headers: { 'x-fail': '1' } })`,
      says: 'error: The module of --world failed: it broke',
      hint: '',
    },
    {
      program: `await fetch('https://api.openai.com/v1/responses', { method: 'POST' })`,
      says: 'calls a model, and nothing answers: POST https://api.openai.com/v1/responses',
      hint: '--model-script <file>',
    },
  ])('$says', async ({ program, args, says, hint }) => {
    const { code, stdout, stderr } = await crashtest(program, args)
    expect(stderr).toContain(says)
    expect(stderr).toContain(hint)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  test('mistakes in the command are reported before anything runs', async () => {
    const cwd = project({ 'app.js': '', 'script.json': '[1]', 'world.js': 'export default 1' })
    const says = async (...args: string[]): Promise<string> => {
      const { code, stderr } = await skein(['crashtest', ...args], { cwd })
      expect(code).toBe(2)
      return stderr
    }
    const texts = await Promise.all([
      says('none.js'),
      says('.'),
      says('app.js', '--send', 'POST'),
      says('app.js', '--jobs', '0'),
      says('app.js', '--model-script', 'script.json'),
      says('app.js', '--world', 'world.js'),
      says('app.js', '--replay', 'a', '--record', 'b'),
      says('app.js', '--agent', 'x'),
    ])
    expect(texts.map((text) => text.split('\n')[0]!.replaceAll(cwd, '.'))).toEqual([
      'error: There is no file ./none.js.',
      'error: . has no agents/.',
      'error: --send takes a method, an address and a body.',
      'error: --jobs takes a whole number from 1 to 16.',
      'error: Step 1 of ./script.json is unknown.',
      'error: ./world.js has no world.',
      'error: Use one of --model-script, --record and --replay.',
      'error: --agent and --message are for a folder with agents/.',
    ])
  })
})

async function freePort(): Promise<number> {
  const { createServer } = await import('node:net')
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
