/**
 * The name, method and path of every operation. `{name}` is a parameter of the path, and `{name*}`
 * matches the rest of the path with its slashes. This list is separate from the operations themselves,
 * because the client builds its requests from it in a browser, where no server code may be loaded.
 */
export const ADDRESSES = {
  getHealth: 'GET /healthz',
  getReadiness: 'GET /readyz',
  getMetrics: 'GET /metrics',
  getLimits: 'GET /limits',
  getOpenApi: 'GET /openapi.json',

  getStudioMe: 'GET /studio/me',
  createStudioSession: 'POST /studio/session',
  deleteStudioSession: 'DELETE /studio/session',

  listAgents: 'GET /agents',
  getAgent: 'GET /agents/{agent}',
  tryTool: 'POST /agents/{agent}/tools/{tool}/try',

  listThreads: 'GET /threads',
  createThread: 'POST /threads',
  getThread: 'GET /threads/{threadId}',
  getThreadView: 'GET /threads/{threadId}/view',
  updateThread: 'PATCH /threads/{threadId}',
  deleteThread: 'DELETE /threads/{threadId}',
  listSubagents: 'GET /threads/{threadId}/subagents',

  listMessages: 'GET /threads/{threadId}/messages',
  sendMessage: 'POST /threads/{threadId}/messages',
  updateMessage: 'PATCH /threads/{threadId}/messages/{messageId}',
  deleteMessage: 'DELETE /threads/{threadId}/messages/{messageId}',
  unsendMessage: 'DELETE /threads/{threadId}/queue/{queueId}',

  stopThread: 'POST /threads/{threadId}/stop',
  resumeThread: 'POST /threads/{threadId}/resume',
  terminateThread: 'POST /threads/{threadId}/terminate',
  eraseThread: 'POST /threads/{threadId}/erase',
  forkThread: 'POST /threads/{threadId}/fork',
  getResult: 'GET /threads/{threadId}/result',

  streamChanges: 'GET /changes',
  listEvents: 'GET /threads/{threadId}/events',
  streamThread: 'GET /threads/{threadId}/stream',

  exportThread: 'GET /threads/{threadId}/export',
  importThread: 'POST /threads/import',

  listFiles: 'GET /threads/{threadId}/files',
  readFile: 'GET /threads/{threadId}/files/{path*}',
  writeFile: 'PUT /threads/{threadId}/files/{path*}',
  deleteFile: 'DELETE /threads/{threadId}/files/{path*}',

  listValues: 'GET /threads/{threadId}/values',
  getValue: 'GET /threads/{threadId}/values/{key*}',
  setValue: 'PUT /threads/{threadId}/values/{key*}',
  deleteValue: 'DELETE /threads/{threadId}/values/{key*}',

  listUserValues: 'GET /users/{user}/values',
  eraseUserValues: 'DELETE /users/{user}/values',
  getUserValue: 'GET /users/{user}/values/{key*}',
  setUserValue: 'PUT /users/{user}/values/{key*}',
  deleteUserValue: 'DELETE /users/{user}/values/{key*}',

  listEnv: 'GET /threads/{threadId}/env',
  setEnv: 'PUT /threads/{threadId}/env/{name}',
  deleteEnv: 'DELETE /threads/{threadId}/env/{name}',

  getVariablesRequest: 'GET /threads/{threadId}/variables/{requestId}',
  provideVariables: 'POST /threads/{threadId}/variables/{requestId}',

  listApprovals: 'GET /approvals',
  getApproval: 'GET /approvals/{threadId}/{interruptId}',
  decide: 'POST /approvals/{threadId}/{interruptId}',
  listAllGrants: 'GET /grants',
  listGrants: 'GET /threads/{threadId}/grants',
  makeGrant: 'POST /threads/{threadId}/grants',
  revokeGrant: 'DELETE /threads/{threadId}/grants/{grantId}',

  listEffects: 'GET /threads/{threadId}/effects',
  scheduleEffect: 'POST /threads/{threadId}/effects',
  runEffect: 'POST /threads/{threadId}/effects/{effectId}/run',
  deleteEffect: 'DELETE /threads/{threadId}/effects/{effectId}',

  listLogs: 'GET /threads/{threadId}/logs',
  getLog: 'GET /threads/{threadId}/logs/{logId}',
  listFailures: 'GET /threads/{threadId}/failures',
  getCost: 'GET /threads/{threadId}/cost',
  getAudit: 'GET /threads/{threadId}/audit',

  getEndpoint: 'GET /threads/{threadId}/x/{path*}',
  postEndpoint: 'POST /threads/{threadId}/x/{path*}',
  putEndpoint: 'PUT /threads/{threadId}/x/{path*}',
  patchEndpoint: 'PATCH /threads/{threadId}/x/{path*}',
  deleteEndpoint: 'DELETE /threads/{threadId}/x/{path*}',

  chat: 'POST /agents/{agent}/chat',
  getChat: 'GET /agents/{agent}/chat/{threadId}',
  resumeChat: 'GET /agents/{agent}/chat/{threadId}/stream',
  stopChat: 'POST /agents/{agent}/chat/{threadId}/stop',
  runAgUi: 'POST /agents/{agent}/ag-ui',

  mcp: 'POST /agents/{agent}/mcp',
  resumeMcp: 'GET /agents/{agent}/mcp',

  getServerCard: 'GET /.well-known/agent-card.json',
  getAgentCard: 'GET /agents/{agent}/.well-known/agent-card.json',
  a2a: 'POST /agents/{agent}/a2a',

  chatCompletions: 'POST /v1/chat/completions',
  responses: 'POST /v1/responses',
  messages: 'POST /v1/messages',
  listModels: 'GET /v1/models',
  getModel: 'GET /v1/models/{agent}',
} as const

/** The name of an operation. */
export type OperationId = keyof typeof ADDRESSES

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `${infer Plain}*` ? Plain : Name) | NamesIn<Rest>
  : never

/** The parameters in the path of an operation: `{ threadId: string; path: string }` for `readFile`. */
export type PathParams<Id extends OperationId> = {
  readonly [Name in NamesIn<(typeof ADDRESSES)[Id]>]: string
}

/** Returns the method and the path of an operation. */
export function addressOf(id: OperationId): { readonly method: string; readonly path: string } {
  const [method = '', path = ''] = ADDRESSES[id].split(' ')
  return { method, path }
}
