import { fork } from 'node:child_process'
import { join } from 'node:path'

/** Starts the mock vendor; it ends with this process. Returns its versioned prefix. */
export function startMock(): Promise<string> {
  const child = fork(join(import.meta.dirname, 'mock-vendor.ts'), { execArgv: ['--no-warnings'] })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('message', (port) => resolve(`http://127.0.0.1:${Number(port)}/v1`))
  })
}
