import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '../../..')
const folder = process.env['SKEIN_SHARED'] ?? join(root, '../shared')
let isTold = false

/** A file of the conformance data, which is not part of this repository; undefined where it is absent. */
export function sharedText(path: string): string | undefined {
  const file = join(folder, 'conformance', path)
  if (existsSync(file)) return readFileSync(file, 'utf8')
  if (!isTold)
    process.stdout.write(`skipped: no conformance data at ${join(folder, 'conformance')}\n`)
  isTold = true
  return undefined
}

/** The Pydantic AI histories of the corpus, one JSON text each; empty where the data is absent. */
export function corpusTexts(): string[] {
  const text = sharedText('pydantic-ai/corpus.ndjson')
  return text === undefined ? [] : text.split('\n').filter((line) => line !== '')
}
