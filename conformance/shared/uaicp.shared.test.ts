import { describe, expect, test } from 'vitest'
import {
  ENVELOPE_SCHEMA,
  EVIDENCE_SCHEMA,
  REPORT_SCHEMA,
  validateEnvelope,
  validateEvidence,
  validateReport,
} from '@skein/governance/schema'
import { sharedText } from '../support/shared-data.ts'

const kinds = [
  {
    stem: 'message-envelope',
    missing: 'state',
    schema: ENVELOPE_SCHEMA,
    validate: validateEnvelope,
  },
  {
    stem: 'evidence-object',
    missing: 'source',
    schema: EVIDENCE_SCHEMA,
    validate: validateEvidence,
  },
  {
    stem: 'verification-report',
    missing: 'checks',
    schema: REPORT_SCHEMA,
    validate: validateReport,
  },
]

describe.each(kinds)('$stem', ({ stem, missing, schema, validate }) => {
  test('UAICP-30 the specification’s fixtures get the verdict in their name', () => {
    expect(validate(fixture(`${stem}.valid`))).toEqual([])
    expect(validate(fixture(`${stem}.invalid-missing-${missing}`))).toEqual([
      { path: `/${missing}`, rule: 'required', message: 'is missing' },
    ])
  })

  test('our schema has the same constraints as the specification’s', () => {
    const normative: unknown = JSON.parse(sharedText(`uaicp/schema/${stem}.schema.json`))
    expect(withoutTexts(schema)).toEqual(withoutTexts(normative))
  })
})

test('the hash of the evidence fixture is a placeholder: good for exchange, worth nothing at the gate', () => {
  expect(validateEvidence(fixture('evidence-object.valid'), 'gate').length).toBeGreaterThan(0)
})

function fixture(name: string): unknown {
  return JSON.parse(sharedText(`uaicp/fixtures/${name}.json`))
}

/** A schema without titles and defaults: what it constrains. */
function withoutTexts(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutTexts)
  if (typeof schema !== 'object' || schema === null) return schema
  const kept = Object.entries(schema).filter(
    ([key, value]) =>
      !(['title', '$id', 'description'].includes(key) && typeof value === 'string') &&
      !(key === 'additionalProperties' && value === true),
  )
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutTexts(value)]))
}
