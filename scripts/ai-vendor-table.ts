/** `node --conditions=@skein/source scripts/ai-vendor-table.ts`: writes the table of vendors and capabilities into the README of `@skein/ai`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { page, vendorTable, withTable } from './ai-vendor-table/vendor-table.ts'

const text = readFileSync(page, 'utf8')
writeFileSync(page, withTable(text, await vendorTable()))
