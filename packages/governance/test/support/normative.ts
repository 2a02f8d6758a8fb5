import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ValidateFunction } from 'ajv'
import addFormatsModule from 'ajv-formats'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ENVELOPE_SCHEMA, EVIDENCE_SCHEMA, REPORT_SCHEMA } from '../../src/schema/schemas.ts'

/** The folder of the specification's own schemas and fixtures; `none` except in the group that tests with its data. */
const shared = process.env['SKEIN_SHARED'] ?? 'none'

// The module is CommonJS: its function is the default export itself, or a member of it.
const addFormats = addFormatsModule as unknown as (ajv: Ajv2020) => void
const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats(ajv)

/** The specification's schema of this kind, or our copy of it, which has the same constraints. */
function normativeSchema(kind: Kind): object {
  if (shared === 'none') return own[kind]
  const path = join(shared, 'conformance/uaicp/schema', `${files[kind]}.schema.json`)
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

/** Throws unless the object is what the specification calls valid. */
export function assertValid(kind: Kind, value: unknown): void {
  if (judge[kind](value)) return
  throw new Error(`not a valid ${kind}: ${JSON.stringify(judge[kind].errors)}`)
}
