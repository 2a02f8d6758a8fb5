import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { hashJson, type Delivered } from '../src/index.ts'
import type { Hash } from '../src/contract/envelope.ts'
import { fileLog } from '../src/audit/file-log-node.ts'
import { filePayloads } from '../src/audit/folder-node.ts'
import { encodeNoteKey } from '../src/audit/checkpoint.ts'
import { signStatement, toStatement, verifyStatement } from '../src/audit/statement.ts'
import { verifyLogFolder } from '../src/audit/read-folder-node.ts'
import { generateKey } from '../src/keys/keys.ts'
import { identity, openBank } from './bank.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-receipt-'))
afterAll(() => rmSync(folder, { recursive: true }))
const { privateJwk, publicJwk } = await generateKey()

/** A delivered run whose log and payloads are files. */
async function deliver(name: string): Promise<{
  dir: string
  delivered: Delivered<string>
  payloads: ReturnType<typeof filePayloads>
}> {
  const dir = join(folder, name)
  const log = await fileLog({ dir, origin: 'example.com/audit', key: privateJwk })
  const payloads = filePayloads({ dir: `${dir}-payloads` })
  const bank = await openBank({ audit: log, payloads })
  const find = (tool: string) => bank.tools.find((one) => one.name === tool)!
  const approve = async (asked: Parameters<typeof bank.sign>[0]) => ({
    type: 'approve' as const,
    tokens: [await bank.sign(asked)],
  })
  const delivered = await bank.governor.run(
    bank.task,
    { identity, input: null, approve },
    async (run) => {
      await run.call(find('ledger'), { account: 'A-1' } as never)
      await run.call(find('reverse'), { wire: 'W-1' } as never)
      return 'reversed'
    },
  )
  await log.close()
  return { dir, delivered: delivered as Delivered<string>, payloads }
}

test('a delivery is an in-toto statement that verifies without us', async () => {
  const { delivered } = await deliver('statement')
  expect(delivered.state).toBe('deliver')
  const statement = toStatement(delivered)
  expect(statement).toMatchObject({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ digest: { sha256: hashJson('reversed').slice(7) } }],
    predicate: {
      evidence: [{ source: 'ledger' }, { source: 'reverse' }, { evidence_type: 'approval_token' }],
      reports: [{ verifier_id: 'has-ledger' }],
    },
  })
  expect(statement.predicate.log.checkpoint).toMatch(/^example.com\/audit\n/)
  const envelope = await signStatement(statement, privateJwk)
  expect(await verifyStatement(envelope, [publicJwk])).toEqual(statement)
  // By hand, as DSSE says.
  const payload = Buffer.from(envelope.payload, 'base64')
  const signed = Buffer.concat([
    Buffer.from(`DSSEv1 28 application/vnd.in-toto+json ${payload.length} `),
    payload,
  ])
  const key = await crypto.subtle.importKey(
    'jwk',
    { kty: 'OKP', crv: 'Ed25519', x: publicJwk.x },
    'Ed25519',
    false,
    ['verify'],
  )
  expect(
    await crypto.subtle.verify(
      'Ed25519',
      key,
      Buffer.from(envelope.signatures[0]!.sig, 'base64'),
      signed,
    ),
  ).toBe(true)
  expect(await verifyStatement(envelope, [(await generateKey()).publicJwk])).toBeUndefined()
  expect(
    await verifyStatement({ ...envelope, payloadType: 'text/plain' }, [publicJwk]),
  ).toBeUndefined()
  expect(
    await verifyStatement({ ...envelope, payload: Buffer.from('{}').toString('base64') }, [
      publicJwk,
    ]),
  ).toBeUndefined()
})

test('payloads are erased and the log still verifies; it never held them', async () => {
  const { dir, delivered, payloads } = await deliver('erasure')
  const hash = delivered.evidence[1]!.hash as Hash
  expect(await payloads.get(hash)).toContain('W-1')
  expect(readFileSync(join(dir, 'entries.ndjson'), 'utf8')).not.toContain('"A-1"')
  expect(await payloads.erase(hash)).toBe(true)
  expect(
    await verifyLogFolder(dir, { keys: [publicJwk], trusted: delivered.receipt.checkpoint! }),
  ).toMatchObject({ ok: true, pinned: true })
})

test('skein-audit says what is right and wrong, with 0, 1 and 2', async () => {
  const { dir, delivered } = await deliver('command')
  const [keyFile, pinned] = [join(folder, 'key.json'), join(folder, 'pinned.txt')]
  writeFileSync(keyFile, JSON.stringify(publicJwk))
  writeFileSync(pinned, delivered.receipt.checkpoint!)
  const vkey = encodeNoteKey('example.com/audit', publicJwk)

  const good = audit('verify', dir, '--key', keyFile, '--trusted', pinned)
  expect(good).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^\d+ entries, \d+ of them sealed, no fault\n$/) as string,
  })
  expect(audit('verify', dir, '--key', vkey)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('No trusted checkpoint was given') as string,
  })
  expect(audit('checkpoint', dir)).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^example.com\/audit\n/) as string,
  })

  const entries = join(dir, 'entries.ndjson')
  writeFileSync(entries, readFileSync(entries, 'utf8').replace('reverse', 'reserve'))
  const bad = audit('verify', dir, '--key', vkey, '--trusted', pinned, '--json')
  expect(bad.status).toBe(1)
  expect(JSON.parse(bad.stdout)).toMatchObject({ ok: false, pinned: true })
  expect(audit('verify', dir, '--key', vkey)).toMatchObject({
    status: 1,
    stdout: expect.stringContaining('at entry') as string,
  })

  expect(audit('verify')).toMatchObject({ status: 2 })
  expect(audit('verify', dir, '--key', join(folder, 'nothing.json'))).toMatchObject({ status: 2 })
  expect(audit('checkpoint', folder)).toMatchObject({ status: 2 })
  expect(audit('--help')).toMatchObject({ status: 0 })
}, 60_000)

function audit(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const command = join(import.meta.dirname, '../src/audit/command-node.ts')
  return spawnSync(process.execPath, ['--conditions=@skein/source', command, ...args], {
    encoding: 'utf8',
  })
}
