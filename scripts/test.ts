/**
 * `npm test`: every test and type test of the workspace, with results kept for `npm run conformance`.
 * First the packages of other projects that some of them need are installed into `.cache` (see peers.ts).
 * Then, where the conformance data lies beside the repository, the tests that use it, with results of
 * their own. SKEIN_SHARED names another folder; `none` hides it.
 *
 *   arguments       go to Vitest (`npm test -- packages/base`); only that part is run then
 *   --shared        only the tests over the conformance data
 *   --deep          full counts of fuzz, seeds and kills (see deep-tests.ts)
 */
import { existsSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { resultsReporter } from '../conformance/reporter/results.ts'
import { runDeepTests } from './deep-tests.ts'
import { installPeers, testPeerFolders } from './peers.ts'
import { root, run } from './workspace.ts'

const args = process.argv.slice(2)
const rest = args.filter((argument) => argument !== '--shared' && argument !== '--deep')

if (args.includes('--deep')) process.exitCode = await runDeepTests(rest)
else if (args.includes('--shared')) process.exitCode = await runShared(rest)
else {
  const code = await runAll(rest)
  const isPart = rest.some((argument) => !argument.startsWith('-'))
  process.exitCode = isPart ? code : (await runShared(rest)) || code
}

async function runAll(more: readonly string[]): Promise<number> {
  for (const folder of testPeerFolders()) {
    const failure = await installPeers(folder)
    if (failure === undefined) continue
    console.log(`skipped: the tests that need ${folder}, which npm could not install:\n${failure}`)
  }
  return vitest('.tmp/test-results.json', ['--typecheck', ...more], { SKEIN_SHARED: undefined })
}

async function runShared(more: readonly string[]): Promise<number> {
  const folder = resolve(root, process.env['SKEIN_SHARED'] ?? join('..', 'shared'))
  if (!existsSync(join(folder, 'conformance'))) {
    console.log('skipped: the tests over the conformance data, which is not beside this repository')
    return 0
  }
  return vitest('.tmp/shared-results.json', ['--config', 'vitest.shared.config.ts', ...more], {
    SKEIN_SHARED: folder,
  })
}

async function vitest(
  results: string,
  more: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  rmSync(join(root, results), { force: true })
  // A focused test would silently leave the others out.
  const options = ['run', '--allowOnly=false', '--reporter=default', resultsReporter, ...more]
  const { code } = await run('vitest', options, { env: { ...env, SKEIN_RESULTS: results } })
  return code
}
