// Spends each of the token ids once, as soon as the parent says so, and tells which it got.
import { fileSpent } from '../src/approvals/file-spent-node.ts'
import { sqliteSpent } from '../src/approvals/sqlite-spent-node.ts'

const [kind, path, count] = process.argv.slice(2) as [string, string, string]
const store = kind === 'file' ? fileSpent({ dir: path }) : sqliteSpent({ database: path })
process.on('message', async () => {
  const won: number[] = []
  for (let id = 0; id < Number(count); id++) if (await store.spend(`t${id}`, 9e15)) won.push(id)
  process.send!(won)
  process.disconnect()
})
process.send!('ready')
