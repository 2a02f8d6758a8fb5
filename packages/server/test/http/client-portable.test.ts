import { build } from 'esbuild'
import { expect, test } from 'vitest'

test('the client runs in a browser: no built-in of Node, no server code, and little of anything', async () => {
  const { outputFiles, metafile } = await build({
    stdin: { contents: `export * from '@skein/server/client'`, resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    minify: true,
    metafile: true,
    format: 'esm',
    platform: 'browser',
    conditions: ['@skein/source'],
  })
  const inputs = Object.keys(metafile.inputs)
  expect(
    inputs.filter((file) =>
      /hono|\/http\/|\/store\/|\/kernel\/|packages\/(ai|agents|threads|governance)\//.test(file),
    ),
  ).toEqual([])
  const [bundle] = outputFiles
  expect(bundle!.text).not.toMatch(/\bfrom\s*["']node:|require\(/)
  expect(bundle!.contents.length).toBeLessThan(24_000)
})
