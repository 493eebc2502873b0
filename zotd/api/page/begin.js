// The form for a new session: its directory, model or agent, and mode.

import { byId, element, fill, say } from "./elements.js";
import { Repeatable } from "./requests.js";
import { agentsOf, placesOf } from "./sessions.js";
import { CallError } from "./wire.js";

export class Beginning {
  #call;
  #begun;
  #models = [];
  #requests = new Repeatable();
  #form = byId("beginning");
  #directory = byId("directory");
  #model = byId("model");
  #agent = byId("agent");
  #mode = byId("mode");
  #problem = byId("beginning-problem");

  /** `call(type, fields)` sends a command; `begun(session)` is called with the id of each new session. */
  constructor({ call, begun }) {
    this.#call = call;
    this.#begun = begun;
    this.#form.addEventListener("submit", (event) => this.#submitted(event));
  }

  /** Shows the form with the directories of the known sessions, the one used last first. */
  open(sessions) {
    const places = placesOf(sessions);
    fill(byId("directories"), ...places.map((place) => element("option", { value: place })));
    this.#directory.value ||= places[0] ?? "";
    fill(byId("agents"), ...agentsOf(sessions).map((agent) => element("option", { value: agent })));
    say(this.#problem, "");
    this.#offerModels();
  }

  /** `isLive`: this client is connected. */
  show(isLive) {
    byId("begin").disabled = !isLive;
  }

  /** Offers the models that can be used; without a response the field can be filled in by hand. */
  async #offerModels() {
    try {
      const [{ models }, usual] = await Promise.all([
        this.#call("get_models", { current: true }),
        this.#call("model.show").catch(() => null), // no vendor has a key
      ]);
      this.#models = models;
      const ready = models.filter((model) => model.ready);
      fill(byId("models"), ...ready.map(({ provider, id }) => element("option", { value: `${provider}/${id}` })));
      this.#model.placeholder = usual ? `${usual.info.provider}/${usual.info.id}` : "";
    } catch (error) {
      if (error instanceof CallError) say(this.#problem, error.message);
    }
  }

  async #submitted(event) {
    event.preventDefault();
    const fields = { cwd: directoryOf(this.#directory.value), ...modelOf(this.#model.value, this.#models) };
    if (this.#agent.value.trim()) fields.agent = this.#agent.value.trim();
    if (this.#mode.value) fields.mode = this.#mode.value;
    byId("begin").disabled = true;
    try {
      const answer = await this.#call("session.create", { ...fields, request_id: this.#requests.idOf(fields) });
      this.#requests.answered(fields);
      this.#begun(answer.session.id);
    } catch (error) {
      const isKnown = error instanceof CallError;
      if (isKnown) this.#requests.answered(fields);
      say(this.#problem, isKnown ? error.message : "The connection was lost; press Begin again when it is back.");
    } finally {
      byId("begin").disabled = false;
    }
  }
}

/** A directory as it was typed, without the slashes at its end. */
export function directoryOf(text) {
  return text.trim().replace(/(?<=.)\/+$/, "");
}

/** The fields that name a model, written `provider/model` or `model`; none if the text is empty. */
export function modelOf(text, models) {
  const wanted = text.trim();
  if (wanted === "") return {};
  const [provider] = wanted.split("/", 1);
  const isVendor = wanted.includes("/") && models.some((model) => model.provider === provider);
  return isVendor ? { provider, model: wanted.slice(provider.length + 1) } : { model: wanted };
}
