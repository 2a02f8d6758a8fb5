import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyAudit } from '@skein/runtime'
import { plain, terminalSvg } from '../../../scripts/demo-picture/terminal-svg.ts'
import { showDemo, type ShowDemo } from '../src/demo/show.ts'
import { Running, skein, skeinBin, tempFolder } from './kit.ts'

const root = join(import.meta.dirname, '..', '..', '..')
const demoFolder = join(import.meta.dirname, '..', 'demo')
/** A machine with other work takes its time to start processes. */
const timeout = 120_000

const KEPT = `A refund agent, a scripted model, and a bank in another process that counts.

✓ approval   refund O-7 25 and wire O-8 40 wait for a person; the bank was called 0 times.
✓ kill -9    SIGKILL ended the agent. The bank had paid 2 times and answered 0 times.
✓ once       Started again, it asked the bank about O-7, which was paid 1 time: completed.
✓ in doubt   O-8 was paid 1 time. A person is asked: "refunds ran wire and the process died: did it have its effect?"
✓ amount     Approval of "refund O-5 30" used for 3000: APPROVAL_SCOPE, the bank paid 0 times.
✓ replay     Approval of "refund O-5 30" used once more: APPROVAL_SCOPE, the bank paid 0 times.
✓ thread     Approval of "refund O-5 30" used in another thread: APPROVAL_SCOPE, the bank paid 0 times.
✓ undo       The exchange failed ("the lamp is sold out"): charged 1 time, cancelled 1 time.
✓ evidence   "Order O-9 arrives tomorrow." without looking it up: refused. The customer reads: "The result was not delivered: EVIDENCE_MISSING (0 of 1)."
✓ audit      The audit log of a refund has 9 entries, 9 of them sealed: verified.
✓ one byte   One byte of entry 3 changed in a copy: refused, entries are not those that were signed.

11 of 11 promises kept.
See each step in Studio: npx skein demo --studio
`

describe('skein demo', { timeout }, () => {
  test('every promise is kept, and docs/demo.svg shows this output', async () => {
    const { cwd, temporary } = places()
    const env = { TMPDIR: temporary, FORCE_COLOR: '1' }
    const { code, stdout, stderr } = await skein(['demo'], { cwd, env })
    expect({ code, stderr, text: plain(stdout) }).toEqual({ code: 0, stderr: '', text: KEPT })
    // If this fails: node scripts/demo-picture.ts
    const picture = readFileSync(join(root, 'docs', 'demo.svg'), 'utf8')
    expect(picture).toBe(terminalSvg('npm run demo', stdout))
    expect(readdirSync(temporary).filter((name) => name.startsWith('skein-demo-'))).toEqual([])
  })

  test('--studio shows the threads until Ctrl-C, on the next port if its own is taken', async () => {
    const { cwd, temporary } = places()
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const port = String((other.address() as AddressInfo).port)
    const running = new Running(['demo', '--studio', '--port', port], {
      cwd,
      env: { TMPDIR: temporary },
    })
    await running.until('stderr', 'Ctrl-C')
    other.close()
    expect(running.stderr).toContain(`Port ${port} is taken, so Studio is at http://127.0.0.1:`)
    const [page] = /http:\S+\/studio\/threads\/\S+/.exec(running.stdout)!
    expect((await fetch(page)).status).toBe(200)
    expect((await fetch(page.replace('/studio', ''))).status).toBe(200)
    running.signal('SIGINT')
    expect((await running.ended).code).toBe(0)
    expect(readdirSync(temporary).filter((name) => name.startsWith('skein-demo-'))).toEqual([])
    await expect(fetch(page)).rejects.toThrow('fetch failed')
  })

  test('Ctrl-C ends its processes and removes its files', async () => {
    const { cwd, temporary } = places()
    // As in a terminal: the signal reaches all processes.
    const program = process.execPath
    const running = new Running([skeinBin, 'demo'], { cwd, program, env: { TMPDIR: temporary } })
    await running.until('stdout', 'approval')
    running.signal('SIGINT')
    const { code, stderr } = await running.ended
    expect({ code, stderr }).toEqual({
      code: 130,
      stderr: 'Stopped. Its processes have ended, and its files are removed.\n',
    })
    expect(readdirSync(temporary).filter((name) => name.startsWith('skein-demo-'))).toEqual([])
  })

  test('an agent that does not start, and a machine that is too slow, are named', async () => {
    const broken = play({ skein: join(root, 'no-such-program.js') })
    await expect(broken).rejects.toMatchObject({
      code: 'DEMO_START',
      message: 'The process of the agents ended before it was ready: exit code 1.',
      hint: expect.stringContaining('no-such-program.js'),
    })
    await expect(play({ sceneMs: 1 })).rejects.toMatchObject({
      code: 'DEMO_TIMED_OUT',
      message: 'The scene "crash" did not end within 0.001 seconds.',
      hint: 'The machine may be busy. Run the demo again.',
    })
  })
})

/** One change in one file of the demo. */
interface Change {
  readonly file: string
  readonly before: string | RegExp
  readonly after: string
}

/**
 * Copies of the demo in which a protection is switched off: by an option of the tool or the agent, or by another function
 * that verifies. Each change is in the file of one scene, so the scenes of a copy can be played together.
 */
describe('without the code that protects', { timeout }, () => {
  let folder = ''
  let repeating: Awaited<ReturnType<typeof play>>
  let open: Awaited<ReturnType<typeof play>>

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'skein-unprotected-'))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const isRepeatable = { before: "risk: '", after: "idempotent: true, risk: '" }
    repeating = await play({
      folder: copyOf('repeating', [
        { file: 'tools/refund.ts', ...isRepeatable },
        { file: 'tools/refund.ts', before: / {4}probe: [^]*?,\n(?= {2}\})/, after: '' },
        { file: 'tools/wire.ts', ...isRepeatable },
      ]),
      scenes: ['crash', 'audit'],
      verify: (log) => verifyAudit(log, { keys: [] }),
    })
    open = await play({
      folder: copyOf('open', [
        { file: 'tools/refund.ts', before: 'write_high_risk', after: 'write_low_risk' },
        { file: 'tools/charge.ts', before: / {4}rollback: [^]*?\n {4}\}\),\n/, after: '' },
        { file: 'agents/support.ts', before: /needs: \[.*\]/, after: 'needs: []' },
      ]),
      async verify({ lines }) {
        for (const line of lines) JSON.parse(line)
        return { ok: true, size: lines.length, sealed: lines.length, pinned: false, faults: [] }
      },
    })
  }, timeout)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  function copyOf(name: string, changes: readonly Change[]): string {
    const copy = join(folder, name)
    cpSync(demoFolder, copy, { recursive: true })
    for (const { file, before, after } of changes) {
      const text = readFileSync(join(copy, file), 'utf8')
      if (text.split(before).length !== 2) throw new Error(`${file} has no single ${before}.`)
      writeFileSync(join(copy, file), text.replace(before, after))
    }
    return copy
  }

  test('once: a payment that is declared safe to repeat is paid twice', () => {
    expect(repeating.lines).toContain(
      '✗ once       Started again, it did not ask the bank about O-7, which was paid 2 times: completed.',
    )
    expect(repeating.code, repeating.lines.join('\n')).toBe(1)
  })

  test('in doubt: a payment that is declared safe to repeat is paid twice, and no person is asked', () => {
    expect(repeating.lines).toContain('✗ in doubt   O-8 was paid 2 times. No person is asked.')
  })

  test('audit: a log that no known key has signed is not verified', () => {
    expect(repeating.lines).toContain(
      '✗ audit      The audit log of a refund has 9 entries, 0 of them sealed: not verified.',
    )
  })

  test('approval: a payment that is declared a small risk waits for no person', () => {
    expect(open.lines).toContain(
      '✗ approval   wire O-8 40 waits for a person; the bank was called 1 time.',
    )
    expect(open.code).toBe(1)
  })

  test.each(['amount', 'replay', 'thread'])(
    '%s: without the gate nothing is asked, and the bank pays',
    (name) => {
      const line = open.lines.find((one) => one.startsWith(`✗ ${name} `))
      expect(line).toContain('nothing was asked, the bank paid 1 time.')
    },
  )

  test('undo: a step without a rollback stays done', () => {
    expect(open.lines).toContain(
      '✗ undo       The exchange failed ("the lamp is sold out"): charged 1 time, cancelled 0 times.',
    )
  })

  test('evidence: an agent whose answers need none makes one up, and it is delivered', () => {
    expect(open.lines).toContain(
      '✗ evidence   "Order O-9 arrives tomorrow." without looking it up: delivered. The customer reads: "Order O-9 arrives tomorrow."',
    )
  })

  test('one byte: a check of the form alone passes the changed copy', () => {
    expect(open.lines).toContain('✗ one byte   One byte of entry 3 changed in a copy: verified.')
  })
})

/** An empty project, and a folder for temporary files. */
function places(): { readonly cwd: string; readonly temporary: string } {
  const cwd = tempFolder()
  const temporary = join(cwd, 'tmp')
  mkdirSync(temporary)
  return { cwd, temporary }
}

/** Plays the demo in this process; its agents and its bank are processes of their own, as always. */
async function play(
  options: Partial<ShowDemo>,
): Promise<{ readonly code: number; readonly lines: readonly string[] }> {
  const lines: string[] = []
  const code = await showDemo(
    {
      folder: demoFolder,
      skein: skeinBin,
      port: 0,
      verify: verifyAudit,
      signal: new AbortController().signal,
      studioUntil: undefined,
      ...options,
    },
    {
      line: (text) => void lines.push(text),
      say: (text) => void lines.push(text),
      paint: (_, text) => text,
    },
  )
  return { code, lines }
}
