/** A server that speaks slowly, as a process of its own, so that a test can kill it: `slow-server.ts <port> <folder>`. */
import { says, scripted, waits } from '@skein/ai/testing'
import { createRuntime, defineAgent, definePrompt } from '@skein/runtime'
import { serve } from '@skein/server'
import { studioFiles } from '../src/index.ts'

const [port = '0', folder = ''] = process.argv.slice(2)
const words = Array.from({ length: 30 }, (_, index) => `word${index} `)
const slow = defineAgent({
  name: 'slow',
  sideA: {
    prompt: definePrompt({
      name: 'slow',
      prompt: 'Speak.',
      model: scripted(() => words.flatMap((word) => [says(word), waits(80)])),
    }),
  },
})
const runtime = await createRuntime({
  agents: [slow],
  folder,
  keepsSecretKeyWithData: true,
})
await runtime.start()
const serving = await serve(runtime, { port: Number(port), auth: 'none', studio: studioFiles() })
process.stdout.write(`${serving.url}\n`)
