import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.js";
import "./style.css";
import "./tiles.css";

const main = document.body.appendChild(document.createElement("main"));
createRoot(main).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
