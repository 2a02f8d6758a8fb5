/**
 * `npm run docs`: builds the site of the documentation into the package that serves it (`/studio/docs/`).
 * `-- --serve` then shows it on loopback, on `--port` (default 4112). What the site is made with is installed into `.cache` first.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { studioFiles } from '../packages/studio/src/files.ts'
import { buildDocs } from './docs/build.ts'

const { values } = parseArgs({
  options: { serve: { type: 'boolean' }, port: { type: 'string', default: '4112' } },
})
const port = Number(values.port)
if (!Number.isInteger(port) || port < 0 || port > 65_535)
  throw new Error(`--port takes a number from 0 to 65535, not "${values.port}".`)

const start = performance.now()
const built = await buildDocs()
if (typeof built === 'string') {
  console.log(`skipped: the site of the docs, whose generator npm could not install:\n${built}`)
} else {
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  const size = Math.round(built.bytes / 1000)
  console.log(`built ${built.pages} pages, ${size} kB, in ${seconds} s: packages/studio/dist/docs`)
  if (values.serve) serve()
}

function serve(): void {
  const files = studioFiles()
  const server = createServer(({ url = '/' }, response) => {
    const path = decodeURIComponent(new URL(url, 'http://localhost').pathname)
    const file = files.get(`docs${path}`)
    response.writeHead(file ? 200 : 404, { 'content-type': file?.type ?? 'text/plain' })
    response.end(file?.body ?? 'There is no such page.\n')
  })
  server.listen(port, '127.0.0.1', () => {
    const { port: own } = server.address() as AddressInfo
    console.log(`http://127.0.0.1:${own}/`)
  })
}
