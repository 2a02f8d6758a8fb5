#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { decodeBase64, encodeBase64Url } from '@skein/base'
import type { PublicJwk } from '../keys/keys.ts'
import { parseCheckpoint } from './checkpoint.ts'
import { readCheckpoints, verifyLogFolder } from './read-folder-node.ts'
import type { LogVerdict } from './verify-log.ts'

const HELP = `skein-audit verify <folder> --key <key> [--trusted <file>] [--json]
skein-audit checkpoint <folder>

verify      reads the whole log and lists everything that is wrong with it
checkpoint  prints the newest checkpoint, to keep somewhere else

--key       a file with a JWK or JWK Set, or a key as text: name+keyid+base64; may be repeated
--trusted   a file with a checkpoint that you kept; without it, a log that was rewritten
            as a whole passes
--json      prints the verdict as JSON

Exit code: 0 no fault was found, 1 there is a fault, 2 the log could not be read.
`

process.exitCode = await main()

async function main(): Promise<number> {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        key: { type: 'string', multiple: true },
        trusted: { type: 'string' },
        json: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    })
    const [command, folder] = positionals
    if (values.help === true) return print(HELP, 0)
    if (command === 'checkpoint' && folder) {
      let newest: string | undefined
      for await (const checkpoint of readCheckpoints(folder)) newest = checkpoint
      const isReadable = newest !== undefined && parseCheckpoint(newest) !== undefined
      return isReadable ? print(newest ?? '', 0) : complain('There is no checkpoint.\n')
    }
    if (command !== 'verify' || !folder || !values.key) return complain(HELP)
    const keys = values.key.flatMap(readKeys)
    const trusted = values.trusted === undefined ? undefined : readFileSync(values.trusted, 'utf8')
    const verdict = await verifyLogFolder(folder, { keys, trusted })
    const text = values.json === true ? `${JSON.stringify(verdict)}\n` : describe(verdict)
    return print(text, verdict.ok ? 0 : 1)
  } catch (error) {
    return complain(`${error instanceof Error ? error.message : String(error)}\n`)
  }
}

/**
 * Reads public keys from the value of `--key`: a key in the text form of transparency tools, or the path
 * of a file with one or more JWKs.
 */
function readKeys(value: string): PublicJwk[] {
  const note = /^[^\s+]+\+[0-9a-f]{8}\+(.+)$/.exec(value)
  if (note) {
    const x = encodeBase64Url(decodeBase64(note[1]!).slice(1))
    return [{ kty: 'OKP', crv: 'Ed25519', x }]
  }
  const parsed = JSON.parse(readFileSync(value, 'utf8')) as PublicJwk & { keys?: PublicJwk[] }
  return parsed.keys ?? [parsed]
}

function describe({ ok, size, sealed, pinned, faults }: LogVerdict): string {
  const lines = faults.map(
    ({ index, kind, detail }) => `${kind} at entry ${index}: ${detail ?? ''}`,
  )
  const summary = `${size} entries, ${sealed} of them sealed, ${ok ? 'no fault' : `${faults.length} fault${faults.length === 1 ? '' : 's'}`}`
  const warning = pinned
    ? []
    : ['No trusted checkpoint was given: a log that was rewritten as a whole would pass too.']
  return `${[...lines, summary, ...warning].join('\n')}\n`
}

function print(text: string, code: number): number {
  process.stdout.write(text)
  return code
}

function complain(text: string): number {
  process.stderr.write(text)
  return 2
}
