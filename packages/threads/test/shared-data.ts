import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const folder = join(
  process.env['SKEIN_SHARED'] ?? join(root, '../shared'),
  'conformance/pydantic-ai',
)

/** Whether the conformance data is here; says so once when it is not. */
export const hasSharedData: boolean = existsSync(join(folder, 'corpus.ndjson'))
if (!hasSharedData) console.log('conformance/pydantic-ai is not here: its histories are skipped')

/** The message lists of the corpus as the bytes they were written with. */
export function corpusTexts(): readonly string[] {
  const lines = readFileSync(join(folder, 'corpus.ndjson'), 'utf8').trimEnd().split('\n')
  return lines.map((line) => line.slice(line.indexOf('"messages":') + '"messages":'.length, -1))
}

export function generatedText(name: string): string {
  return readFileSync(join(folder, `${name}.json`), 'utf8').trim()
}
