/**
 * `npm run dev`: the agents (`skein dev`) and the page (Vite) in one terminal. The page asks Vite, which passes
 * /agents on to the agents, so the browser sees one address.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { createServer } from 'vite'

const command = fileURLToPath(new URL('bin/skein.js', import.meta.resolve('skein/package.json')))
const agents = spawn(process.execPath, [command, 'dev', ...process.argv.slice(2)], {
  stdio: ['inherit', 'pipe', 'inherit'],
})
// Ctrl-C reaches both processes; this one waits until running threads are parked.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => signal === 'SIGTERM' && agents.kill(signal))
agents.once('exit', (code) => process.exit(code ?? 1))

let shown = ''
agents.stdout.on('data', (text: Buffer) => {
  process.stdout.write(text)
  if (shown.includes('\n')) return
  shown += String(text)
  // The first line has the address: `skein dev` takes another port if its own is taken.
  if (shown.includes('\n'))
    showPage(/http:\S+/.exec(shown)?.[0] ?? '').catch((error: unknown) => {
      console.error(error)
      agents.kill('SIGTERM')
    })
})

async function showPage(target: string): Promise<void> {
  const page = await createServer({ server: { proxy: { '/agents': { target } } } })
  await page.listen()
  console.log(`page    ${page.resolvedUrls?.local[0]}`)
}
