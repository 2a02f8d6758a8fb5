import type { Commit, Store } from '@skein/runtime'
import type { Canary } from './canary.ts'
import type { Chance } from './chance.ts'

/** A bug that is planted between the runtime and its store, to see that the simulation finds it. */
export type Plant = (
  store: Store,
  parts: { readonly chance: Chance; readonly canary: Canary },
) => Store

export const plants: Readonly<Record<string, Plant>> = {
  'lost-fence': (store) =>
    rewriting(store, (commit) => ({
      ...commit,
      threads: commit.threads.map(({ fence: _, ...change }) => change),
    })),
}

export function rewriting(store: Store, rewrite: (commit: Commit) => Commit): Store {
  return committing(store, (commit) => store.commit(rewrite(commit)))
}

export function committing(store: Store, commit: Store['commit']): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'commit') return commit
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
