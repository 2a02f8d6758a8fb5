import type { KernelState } from './state.ts'

/** The state before the first event. */
export function emptyKernelState(): KernelState {
  return {
    seq: 0,
    threadId: '',
    createdAt: '',
    agent: '',
    title: undefined,
    depth: 0,
    parent: undefined,
    arguments: {},
    metadata: {},
    entries: [],
    places: new Map(),
    callPlaces: new Map(),
    queue: [],
    queuedIds: new Map(),
    session: undefined,
    lastSession: undefined,
    stop: 'none',
    resume: undefined,
    terminated: undefined,
    isErased: false,
    immediateFor: undefined,
    interrupts: new Map(),
    children: new Map(),
    values: new Map(),
    env: new Map(),
    files: new Map(),
    effects: new Map(),
    variables: new Map(),
    compacted: { a: undefined, b: undefined },
    usage: { tokens: 0, costUsd: 0, startedAt: 0 },
    lastLog: { a: undefined, b: undefined },
    statusText: undefined,
  }
}
