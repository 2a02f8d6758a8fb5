// Commits numbered rows as fast as it can and prints each number when it was answered, until it is killed.
import { writeSync } from 'node:fs'
import { sha256Hex } from '@skein/base'
import { sqliteStore } from '../src/store/sqlite/sqlite-store.ts'
import { claimed, newThread, valueSet } from '../src/testing/contract.ts'

const [path = '', first = '0'] = process.argv.slice(2)
const store = sqliteStore({ path })
let next = Number(first)

async function write(worker: number): Promise<void> {
  const id = `w${worker}`
  if (!(await store.head(id)))
    await store.commit({ point: 'create', threads: [{ id, create: newThread(id) }] })
  for (;;) {
    const number = next++
    const bytes = Buffer.from(`blob ${number}`)
    const hash = sha256Hex(bytes)
    const text = 'x'.repeat((number * 131) % 3000)
    const claim = await claimed(store, id)
    await store.commit({
      point: 'row',
      threads: [
        {
          id,
          fence: claim.epoch,
          append: [valueSet({ number, text }), valueSet(hash)],
          head: { tokens: number },
        },
        { id: 'sum', append: [valueSet(number)], wake: { by: number } },
      ],
      blobs: [{ hash, bytes }],
      audit: [{ tree: 'sum', requestId: `r${number}`, seq: 0, line: `${number}` }],
      spent: [{ jti: `${number}`, exp: 1 }],
    })
    // Not console.log: what was printed must be out before this process can be killed.
    writeSync(1, `${number}\n`)
  }
}

if (!(await store.head('sum')))
  await store.commit({ point: 'create', threads: [{ id: 'sum', create: newThread('sum') }] })
await Promise.all([0, 1, 2, 3].map((worker) => write(worker)))
