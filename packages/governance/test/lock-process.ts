// Takes the lock of a folder again and again, as soon as the parent says so, and tells what happened. Every third
// time it leaves the lock as a process that died would. With "no links" the file system has no hard links.
import { randomUUID } from 'node:crypto'
import fs, { openSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

const [dir, count, links] = process.argv.slice(2) as [string, string, string]
if (links === 'no links') {
  fs.linkSync = () => {
    throw Object.assign(new Error('no hard links here'), { code: 'EPERM' })
  }
  syncBuiltinESMExports()
}
const { lockFolder } = await import('../src/audit/folder-node.ts')
const lock = join(dir, 'lock')
const mark = join(dir, 'mark')
const told = { locked: 0, refused: 0, shared: 0, errors: [] as string[] }

function tryOnce(): void {
  let unlock: () => void
  try {
    unlock = lockFolder(dir)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'LOG_LOCKED') told.refused++
    else told.errors.push(message)
    return
  }
  told.locked++
  try {
    // Only one process at a time can make the mark, and the lock names this process until it ends its work.
    fs.closeSync(openSync(mark, 'wx'))
    if (Number.parseInt(readFileSync(lock, 'utf8'), 10) !== process.pid) told.shared++
    unlinkSync(mark)
  } catch {
    told.shared++
  }
  if (told.locked % 3 === 0) {
    const dead = `${lock}.${process.pid}.dead`
    writeFileSync(dead, `999999999 ${randomUUID()}\n`)
    renameSync(dead, lock)
  }
  unlock()
}

process.on('message', () => {
  for (let round = 0; round < Number(count); round++) tryOnce()
  process.send!(told)
  process.disconnect()
})
process.send!('ready')
