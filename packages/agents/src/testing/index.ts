export { describeCheckpointStore } from './checkpoint-store-suite.ts'
export { recordEvents } from './scripted-agent.ts'
export { scriptedAgent, type ScriptedAgent } from './scripted-agent.ts'
