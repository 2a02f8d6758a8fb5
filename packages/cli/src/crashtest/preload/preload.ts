/**
 * What `skein crashtest` loads into each process of a program, before the program (`node --import`). It imports nothing
 * but modules of Node, and works in any Node that the program may need.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CRASHTEST, type Preloaded, VARIABLE } from './protocol.ts'
import { interceptChildren } from './children.ts'
import { interceptFetch } from './fetch.ts'
import { interceptHttp } from './http.ts'
import { guardSockets } from './sockets.ts'
import { interceptSqlite } from './sqlite.ts'
import { createSteps } from './steps.ts'

const text = process.env[VARIABLE]
if (text !== undefined) {
  const preloaded = JSON.parse(text) as Preloaded
  writeFileSync(join(preloaded.notes, 'pids', String(process.pid)), '')
  const steps = createSteps(preloaded)
  Object.assign(globalThis, { [CRASHTEST]: steps })
  guardSockets(preloaded)
  interceptFetch(preloaded, steps)
  interceptHttp(preloaded, steps)
  interceptSqlite(steps)
  interceptChildren()
}
