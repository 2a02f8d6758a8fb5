/** A program without a framework. It notes each step that it has done in a file, and skips it when it is started again. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

const done: string[] = existsSync('done.json') ? JSON.parse(readFileSync('done.json', 'utf8')) : []
for (const step of ['refunds/O-7', 'letters/O-7']) {
  if (done.includes(step)) continue
  const headers = process.argv.includes('key') ? { 'idempotency-key': step } : undefined
  await fetch(`https://bank.test/${step}`, { method: 'POST', headers })
  done.push(step)
  writeFileSync('done.json', JSON.stringify(done))
}
