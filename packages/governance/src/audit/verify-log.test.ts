import { describe, expect, test } from 'vitest'
import { seededRandom } from '@skein/base'
import { entriesOf, steps, wovenEntries } from '../../test/sample-log.ts'
import { cosignCheckpoint, parseCheckpoint } from './checkpoint.ts'
import { generateKey, toSigningKey } from '../keys/keys.ts'
import { memoryLog, type MemoryLog } from './memory-log.ts'
import { verifyInclusion, leafHash, verifyConsistency } from './merkle.ts'
import { verifyLog, type LogFaultKind, type VerifyLogOptions } from './verify-log.ts'

const log = await sealedLog(6)
const keys = [await log.publicKey()]
const trusted = log.checkpoints.at(-1)!
const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

/** A log of several requests with checkpoints on the way and one at the end. */
async function sealedLog(requests: number, options = {}): Promise<MemoryLog> {
  const made = memoryLog({ origin: 'test', ...options })
  for (const [index, entry] of wovenEntries(requests).entries()) {
    made.append(entry)
    if (index % 20 === 19) await made.seal()
  }
  await made.seal()
  return made
}

/** The kinds of fault in a log with these lines, against the original's checkpoints. */
async function kinds(
  lines: readonly string[] | string,
  options: Partial<VerifyLogOptions> = {},
): Promise<LogFaultKind[]> {
  const stored = typeof lines === 'string' ? lines : text(lines)
  const verdict = await verifyLog(stored, {
    keys,
    checkpoints: log.checkpoints,
    trusted,
    ...options,
  })
  expect(verdict.ok).toBe(verdict.faults.length === 0)
  return [...new Set(verdict.faults.map(({ kind }) => kind))]
}

test('a sealed log is good, in pieces of any length, and says what that means', async () => {
  const stored = text(log.lines)
  const options = { keys, checkpoints: log.checkpoints, trusted }
  const verdict = { ok: true, size: 66, sealed: 66, pinned: true, faults: [] }
  expect(await verifyLog(stored, options)).toEqual(verdict)
  const bytes = new TextEncoder().encode(stored)
  for (const length of [1, 7, 100, 65_536]) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / length) }, (_, i) =>
      bytes.slice(i * length, (i + 1) * length),
    )
    expect(await verifyLog(pieces, options)).toEqual(verdict)
  }
  expect(await verifyLog(stored, { keys })).toEqual({ ...verdict, sealed: 0, pinned: false })
  expect(await verifyLog(stored + text([entriesOf(9)[0]!.line]), options)).toMatchObject({
    ok: true,
    size: 67,
    sealed: 66,
  })
})

describe('finds', () => {
  const lines = log.lines
  const without = (at: number): string[] => lines.filter((_, index) => index !== at)

  test('an edit', async () => {
    expect(
      await kinds(lines.map((line, i) => (i === 30 ? line.replace('agent-1', 'agent-2') : line))),
    ).toEqual(['edit'])
    expect(await kinds(lines.map((line, i) => (i === 30 ? `${line} ` : line)))).toEqual(['edit'])
    expect(await kinds(lines.map((line, i) => (i === 30 ? 'x' : line)))).toContain('edit')
    expect(
      await verifyLog(text(lines.map((line, i) => (i === 30 ? `${line} ` : line))), {
        keys,
        checkpoints: log.checkpoints,
      }),
    ).toMatchObject({
      ok: false,
      sealed: 20,
      faults: [{ kind: 'edit', index: 39 }],
    })
  })

  test('an inserted entry', async () => {
    expect(await kinds([...lines.slice(0, 30), lines[12]!, ...lines.slice(30)])).toContain('insert')
  })

  test('swapped entries of one request', async () => {
    const swapped = [...lines]
    ;[swapped[30], swapped[36]] = [swapped[36]!, swapped[30]!]
    expect(await kinds(swapped)).toContain('reorder')
  })

  test('removed entries, at the end and within', async () => {
    expect(await kinds(lines.slice(0, 50))).toEqual(['truncate'])
    expect(await kinds(lines.slice(0, 60), { checkpoints: log.checkpoints.slice(0, 3) })).toEqual([
      'truncate',
    ])
    expect(await kinds([])).toEqual(['truncate'])
    expect(await kinds(without(30))).toContain('truncate')
  })

  test('a torn end', async () => {
    expect(await kinds(text(lines).slice(0, -5))).toContain('torn')
    expect(await kinds(`${text(lines)}{"half`)).toEqual(['torn'])
  })

  test('a rewritten log, signed with the same key: only the pinned checkpoint tells', async () => {
    const key = toSigningKey((await generateKey()).privateJwk)
    const [honest, rewritten] = [await sealedLog(6, { key }), await sealedLog(5, { key })]
    const options = { keys: [key.jwk], checkpoints: rewritten.checkpoints }
    for (const entry of entriesOf(77)) rewritten.append(entry)
    await rewritten.seal()
    expect(await verifyLog(text(rewritten.lines), options)).toMatchObject({
      ok: true,
      pinned: false,
    })
    for (const pinned of honest.checkpoints.slice(1)) {
      const verdict = await verifyLog(text(rewritten.lines), { ...options, trusted: pinned })
      expect(verdict.faults.map(({ kind }) => kind)).toEqual(['fork'])
    }
  })

  test('bad signatures, of the log and of the pinned checkpoint', async () => {
    const other = await sealedLog(6)
    expect(
      await kinds(lines, {
        checkpoints: [...log.checkpoints.slice(0, -1), other.checkpoints.at(-1)!],
      }),
    ).toContain('signature')
    expect(await kinds(lines, { trusted: other.checkpoints[0]! })).toEqual(['signature'])
    expect(await kinds(lines, { trusted: 'nothing' })).toEqual(['signature'])
    expect(await kinds(lines, { keys: [await other.publicKey()] })).toContain('signature')
    expect(await kinds(lines, { checkpoints: [log.checkpoints[2]!, log.checkpoints[1]!] })).toEqual(
      ['fork'],
    )
  })

  test('too few witnesses', async () => {
    const { privateJwk, publicJwk } = await generateKey()
    const key = toSigningKey(privateJwk)
    const witnesses = { known: [{ name: 'w', key: publicJwk }], quorum: 1 }
    expect(await kinds(lines, { witnesses })).toEqual(['signature'])
    const cosigned = await cosignCheckpoint(trusted, { name: 'w', key, time: 1 })
    expect(
      await kinds(lines, { witnesses, checkpoints: [...log.checkpoints.slice(0, -1), cosigned] }),
    ).toEqual([])
  })
})

describe('finds impossible sequences, even in a log that is sealed and pinned', () => {
  const without = (...seqs: number[]): typeof steps => steps.filter((_, seq) => !seqs.includes(seq))
  const at = (seq: number, changes: object): typeof steps =>
    steps.map((step, index) => (index === seq ? { ...step, ...changes } : step))
  const cases: Record<string, typeof steps> = {
    'a delivery without verify': without(8, 9),
    'a request that begins in the middle': without(0),
    'a transition the table does not have': without(1, 2),
    'a high-risk call without approval': without(4, 5),
    'a high-risk call without approval that names none': without(4, 5).map((step) =>
      step.event.type === 'call_started'
        ? { ...step, event: { ...step.event, data: withoutDigest(step.event.data) } }
        : step,
    ),
    'a high-risk call without rollback': at(6, { rollback: undefined }),
    'a write that ends without having begun': without(6),
    'a delivery while a call runs': without(7),
    'a delivery on evidence nobody collected': without(3),
    'a delivery on a report nobody made': without(9),
    'a delivery that is no success': at(10, { outcome: 'uncertain' }),
    'a delivery on a report that did not pass': at(9, { outcome: 'failure' }),
    ...Object.fromEntries(
      (['success', 'failure', 'pending'] as const).map((outcome) => [
        `a fail-safe that ends with ${outcome}`,
        [...steps.slice(0, 4), ...failing(outcome)],
      ]),
    ),
    'an entry outside its state': at(3, { state: 'plan' }),
    'an entry after the end': [...steps, steps[3]!],
    'a call started twice': [...steps.slice(0, 7), steps[6]!, ...steps.slice(7)],
    'a request opened twice': [...steps.slice(0, 1), ...steps],
  }
  for (const [name, list] of Object.entries(cases)) {
    test(name, async () => {
      const made = memoryLog({ origin: 'test' })
      for (const entry of entriesOf(1, list)) made.append(entry)
      const checkpoint = await made.seal()
      const options = {
        keys: [await made.publicKey()],
        checkpoints: [checkpoint],
        trusted: checkpoint,
      }
      const verdict = await verifyLog(text(made.lines), options)
      expect(verdict.ok).toBe(false)
      expect(verdict.faults[0]).toMatchObject({ kind: 'semantics' })
    })
  }
})

function failing(outcome: 'success' | 'failure' | 'pending'): typeof steps {
  const data = { reasons: [], missing: [], undo: [] }
  return [
    { state: 'verify', event: { type: 'transition', data: { from: 'execute' } } },
    {
      state: 'fail_safe',
      outcome: 'uncertain',
      event: { type: 'transition', data: { from: 'verify' } },
    },
    { state: 'fail_safe', outcome, event: { type: 'failed_safe', data } },
  ]
}

function withoutDigest<T extends { readonly digest?: unknown }>(data: T): Omit<T, 'digest'> {
  const { digest: _digest, ...rest } = data
  return rest
}

test('proofs of the log verify against its checkpoints', async () => {
  const [older, newer] = [parseCheckpoint(log.checkpoints[1]!)!, parseCheckpoint(trusted)!]
  const decode = (list: readonly string[]): Uint8Array[] =>
    list.map((hash) => new Uint8Array(Buffer.from(hash, 'base64')))
  const proof = decode(await log.prove(13, newer.size))
  expect(
    verifyInclusion({
      leaf: leafHash(log.lines[13]!),
      index: 13,
      size: newer.size,
      root: newer.root,
      proof,
    }),
  ).toBe(true)
  expect(
    verifyConsistency({
      first: older.size,
      second: newer.size,
      firstRoot: older.root,
      secondRoot: newer.root,
      proof: decode(await log.consistency(older.size, newer.size)),
    }),
  ).toBe(true)
})

test('random mutations of a sealed log are never "ok" against a pinned checkpoint', async () => {
  const count = process.env['SKEIN_DEEP'] ? 100_000 : 600
  const random = seededRandom(20260101)
  const below = (limit: number): number => Math.floor(random() * limit)
  const small = await sealedLog(2)
  const original = text(small.lines)
  const options = { keys: [await small.publicKey()], trusted: small.checkpoints.at(-1)! }
  let falseOk = 0
  for (let run = 0; run < count; run++) {
    const mutated = mutate(original, below)
    if (mutated === original || mutated.startsWith(original)) continue
    const checkpoints = run % 2 ? small.checkpoints : []
    if ((await verifyLog(mutated, { ...options, checkpoints })).ok) falseOk++
  }
  if (process.env['SKEIN_DEEP'])
    console.log(`${count} mutations of a sealed log, ${falseOk} false "ok"`)
  expect(falseOk).toBe(0)
}, 1_800_000)

function mutate(stored: string, below: (limit: number) => number): string {
  const lines = stored.slice(0, -1).split('\n')
  const [a, b] = [below(lines.length), below(lines.length)]
  const at = below(stored.length)
  switch (below(8)) {
    case 0: // One character.
      return stored.slice(0, at) + String.fromCharCode(32 + below(95)) + stored.slice(at + 1)
    case 1: // A cut.
      return stored.slice(0, at)
    case 2: // A piece removed.
      return stored.slice(0, at) + stored.slice(at + 1 + below(200))
    case 3: // A piece doubled.
      return stored.slice(0, at) + stored.slice(Math.max(0, at - below(300)))
    case 4: // Two lines swapped.
      ;[lines[a], lines[b]] = [lines[b]!, lines[a]!]
      return text(lines)
    case 5: // A line removed.
      lines.splice(a, 1)
      return text(lines)
    case 6: // A line copied elsewhere.
      lines.splice(a, 0, lines[b]!)
      return text(lines)
    default: // A digit changed, so that the JSON stays whole.
      return text(
        lines.map((line, index) =>
          index === a
            ? line.replace(/\d/g, (digit) => (below(9) ? digit : String(below(10))))
            : line,
        ),
      )
  }
}
