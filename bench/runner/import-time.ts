import { measured, type Bench, type Contender } from './bench.ts'
import { peersOf } from '../../scripts/peers.ts'
import { bundleChanged, runPublished } from './published.ts'

/** Milliseconds that an import takes in a new process, for us and for packages of `peers/bench`. */
export function importTime(
  title: string,
  ours: readonly string[],
  peers: Readonly<Record<string, readonly string[]>>,
): Bench {
  return {
    title,
    baseline: 'skein',
    measure: 'returned',
    unit: 'ms',
    warmups: 0,
    repetitions: 3,
    processes: 3,
    contenders: {
      skein: {
        async prepare() {
          await bundleChanged()
          return () => timeImports(ours)
        },
      },
      ...Object.fromEntries(
        Object.entries(peers).map(([name, packages]): [string, Contender] => [
          name,
          {
            peers: packages,
            prepare: () => () => timeImports(packages, peersOf('bench').loader),
          },
        ]),
      ),
    },
  }
}

/** The imports alone are timed: not the start of the process, nor the module that finds the peers. */
async function timeImports(
  specifiers: readonly string[],
  loader?: string,
): Promise<ReturnType<typeof measured>> {
  const find = loader === undefined ? '' : `import { load } from ${JSON.stringify(loader)}\n`
  const word = loader === undefined ? 'import' : 'load'
  const imports = specifiers.map((of) => `await ${word}(${JSON.stringify(of)})`).join('\n')
  const { stdout } = await runPublished(
    `${find}const start = performance.now()\n${imports}\nconsole.log(performance.now() - start)`,
  )
  return measured(Number(stdout.trim().split('\n').at(-1)), 'imported')
}
