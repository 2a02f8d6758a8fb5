import type { SchemaDialect } from '../schema-dialect.ts'

/**
 * What structured output takes (documentation of November 2026): closed objects, and no limits on
 * numbers, lengths and counts. The schemas of tools are not touched.
 */
export const schemaDialect: SchemaDialect = {
  objectRoot: true,
  closedObjects: true,
  rejected: new Set([
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'multipleOf',
    'minLength',
    'maxLength',
    'maxItems',
    'uniqueItems',
    'minProperties',
    'maxProperties',
  ]),
}
