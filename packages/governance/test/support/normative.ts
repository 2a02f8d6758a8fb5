import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ValidateFunction } from 'ajv'
import addFormatsModule from 'ajv-formats'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ENVELOPE_SCHEMA, EVIDENCE_SCHEMA, REPORT_SCHEMA } from '../../src/schema/schemas.ts'

const root = join(import.meta.dirname, '../../../..')
const shared = process.env['SKEIN_SHARED'] ?? join(root, '../shared')

/** The folder of the specification's own schemas and fixtures; undefined where it is not at hand. */
export const normativeFolder: string | undefined = [join(shared, 'conformance/uaicp')].find(
  (path) => existsSync(join(path, 'schema')),
)
if (!normativeFolder) {
  console.log('UAICP schemas not found beside the repository: judging by our own copies alone.')
}

// The module is CommonJS: its function is the default export itself, or a member of it.
const addFormats = addFormatsModule as unknown as (ajv: Ajv2020) => void
const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats(ajv)

/** The specification's schema of this kind, or ours where it is not at hand. */
export function normativeSchema(kind: Kind): object {
  if (!normativeFolder) return own[kind]
  const path = join(normativeFolder, 'schema', `${files[kind]}.schema.json`)
  return JSON.parse(readFileSync(path, 'utf8')) as object
}

export type Kind = 'envelope' | 'evidence' | 'report'

const files = {
  envelope: 'message-envelope',
  evidence: 'evidence-object',
  report: 'verification-report',
} as const
const own = { envelope: ENVELOPE_SCHEMA, evidence: EVIDENCE_SCHEMA, report: REPORT_SCHEMA }

/** Ajv on the normative schemas, asserting formats. */
export const judge: Readonly<Record<Kind, ValidateFunction>> = {
  envelope: ajv.compile(normativeSchema('envelope')),
  evidence: ajv.compile(normativeSchema('evidence')),
  report: ajv.compile(normativeSchema('report')),
}

/** A fixture of the specification by its file name. */
export function fixture(name: string): unknown {
  return JSON.parse(readFileSync(join(normativeFolder ?? '', 'fixtures', name), 'utf8'))
}

/** Throws unless the object is what the specification calls valid. */
export function assertValid(kind: Kind, value: unknown): void {
  if (judge[kind](value)) return
  throw new Error(`not a valid ${kind}: ${JSON.stringify(judge[kind].errors)}`)
}
