/**
 * `npm run docs`: builds the site of the documentation into the package that serves it (`/studio/docs/`).
 * `-- --serve` then shows it on loopback. What the site is made with is installed into `.cache` first.
 */
import { createServer } from 'node:http'
import { studioFiles } from '../packages/studio/src/files.ts'
import { buildDocs } from './docs/build.ts'

const start = performance.now()
const built = await buildDocs()
if (typeof built === 'string') {
  console.log(`skipped: the site of the docs, whose generator npm could not install:\n${built}`)
} else {
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  const size = Math.round(built.bytes / 1000)
  console.log(`built ${built.pages} pages, ${size} kB, in ${seconds} s: packages/studio/dist/docs`)
  if (process.argv.includes('--serve')) serve()
}

function serve(): void {
  const files = studioFiles()
  const server = createServer(({ url = '/' }, response) => {
    const path = decodeURIComponent(new URL(url, 'http://localhost').pathname)
    const file = files.get(`docs${path}`)
    response.writeHead(file ? 200 : 404, { 'content-type': file?.type ?? 'text/plain' })
    response.end(file?.body ?? 'There is no such page.\n')
  })
  server.listen(4112, '127.0.0.1', () => console.log('http://127.0.0.1:4112/'))
}
