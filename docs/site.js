/* SPDX-License-Identifier: MIT
 *
 * A button at each block of code that copies it, without the prompts of a session. */
document.addEventListener("DOMContentLoaded", () => {
    for (const block of document.querySelectorAll("div.highlight")) {
        const button = document.createElement("button");
        button.className = "copy";
        button.textContent = "Copy";
        button.addEventListener("click", async () => {
            const lines = block.querySelector("pre").innerText.split("\n");
            const typed = lines.filter((line) => line.startsWith("$ "));
            const text = typed.length ? typed.map((line) => line.slice(2)) : lines;
            await navigator.clipboard.writeText(text.join("\n"));
            button.textContent = "Copied";
            setTimeout(() => { button.textContent = "Copy"; }, 1500);
        });
        block.append(button);
    }
});
